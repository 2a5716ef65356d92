package view

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/placet-dev/placet/internal/review"
)

// Point is a number at a time.
type Point struct {
	At    time.Time
	Value float64
}

// Chart is how one number that a job told changed over time.
type Chart struct {
	Name   string // foreign
	Unit   string // behind each value; empty: none
	Points []Point
}

// A chart's place in its drawing, whose units are those of a small screen.
const (
	chartWidth, chartHeight = 320, 130
	plotLeft, plotTop       = 4, 8
	plotRight, plotBottom   = chartWidth - 4, chartHeight - 8
)

const (
	mostPoints = 160 // that are drawn
	lastValues = 10  // that stand in the table
)

func (c Chart) last() Point { return c.Points[len(c.Points)-1] }

func (c Chart) bounds() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, p := range c.Points {
		low, high = min(low, p.Value), max(high, p.Value)
	}
	return low, high
}

// drawn are so many of the points that the drawing stays small: of each stretch the one
// that is farthest from the middle, so that no peak is lost.
func (c Chart) drawn() []Point {
	if len(c.Points) <= mostPoints {
		return c.Points
	}
	low, high := c.bounds()
	middle := low/2 + high/2
	ps := []Point{c.Points[0]}
	for i := range mostPoints - 2 {
		from, to := 1+i*(len(c.Points)-2)/(mostPoints-2), 1+(i+1)*(len(c.Points)-2)/(mostPoints-2)
		far := c.Points[from]
		for _, p := range c.Points[from:to] {
			if math.Abs(p.Value-middle) > math.Abs(far.Value-middle) {
				far = p
			}
		}
		ps = append(ps, far)
	}
	return append(ps, c.last())
}

// line is the polyline's points.
func (c Chart) line() string {
	low, high := c.bounds()
	first, last := c.Points[0].At, c.last().At
	var b strings.Builder
	ps := c.drawn()
	for i, p := range ps {
		along := part(float64(p.At.Sub(first)), 0, float64(last.Sub(first)))
		if !last.After(first) { // they came at once: one after the other
			along = part(float64(i), 0, float64(len(ps)-1))
		}
		x := plotLeft + along*(plotRight-plotLeft)
		y := plotBottom - part(p.Value, low, high)*(plotBottom-plotTop)
		fmt.Fprintf(&b, "%.1f,%.1f ", x, y)
	}
	return strings.TrimSpace(b.String())
}

// part is where a value lies between two others; in the middle where they are the same.
func part(v, low, high float64) float64 {
	if high/2-low/2 == 0 {
		return 0.5
	}
	return (v/2 - low/2) / (high/2 - low/2) // halves, since their difference cannot overflow
}

func (c Chart) text(v float64) string { return number(v) + c.Unit }

// number is a value as people read it.
func number(v float64) string {
	if a := math.Abs(v); v == math.Trunc(v) && a < 1e9 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', 5, 64)
}

// about says in a sentence what the drawing shows.
func (c Chart) about() string {
	low, high := c.bounds()
	return fmt.Sprintf("%d values from %s to %s: lowest %s, highest %s, the last %s.",
		len(c.Points), review.UTC(c.Points[0].At), review.UTC(c.last().At), c.text(low), c.text(high), c.text(c.last().Value))
}

func (c Chart) newest() []Point {
	ps := c.Points[max(0, len(c.Points)-lastValues):]
	back := make([]Point, len(ps))
	for i, p := range ps {
		back[len(ps)-1-i] = p
	}
	return back
}
