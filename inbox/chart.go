package inbox

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/inbox/view"
	"github.com/placet-dev/placet/internal/progress"
)

// chartsOf draws the numbers in what a job told, newest first: each that changed over time
// by itself, those that came first.
func chartsOf(es []event.Object) []view.Chart {
	var all []view.Chart
	of := map[string]int{}
	for _, e := range slices.Backward(es) {
		var told struct {
			Type string          `json:"type"`
			Data json.RawMessage `json:"data"`
		}
		when, err := time.Parse(time.RFC3339Nano, e.At)
		if err != nil || json.Unmarshal(e.Payload, &told) != nil || !isNumbers(told.Type) {
			continue
		}
		for _, n := range progress.Numbers(told.Data) {
			i, known := of[n.Name]
			if !known {
				i = len(all)
				of[n.Name] = i
				all = append(all, view.Chart{Name: n.Name})
				if n.Name == progress.Done {
					all[i].Name, all[i].Unit = "done", " %"
				}
			}
			all[i].Points = append(all[i].Points, view.Point{At: when, Value: n.Value})
		}
	}
	all = slices.DeleteFunc(all, func(c view.Chart) bool { return len(c.Points) < 2 })
	return all[:min(len(all), mostCharts)]
}
