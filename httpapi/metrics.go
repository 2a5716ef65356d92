package httpapi

import (
	"bytes"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"github.com/placet-dev/placet/event"
)

// metrics are a server's own figures, and the store's.
type metrics struct {
	all      *prometheus.Registry
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
	waiters  prometheus.Gauge
	events   *prometheus.CounterVec
}

var metricsType = string(expfmt.NewFormat(expfmt.TypeTextPlain))

func newMetrics(stored prometheus.Collector) *metrics {
	m := &metrics{
		all: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "placet_http_requests_total", Help: "Requests answered, by operation and status.",
		}, []string{"operation", "status"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "placet_http_request_seconds", Help: "How long answers took, by operation; waits included.",
			Buckets: []float64{.001, .005, .025, .1, .5, 2.5, 10, 60},
		}, []string{"operation"}),
		waiters: prometheus.NewGauge(prometheus.GaugeOpts{Name: "placet_http_waiters", Help: "Requests that wait for something to happen."}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "placet_events_total", Help: "Events that this process wrote, by type.",
		}, []string{"type"}),
	}
	m.all.MustRegister(m.requests, m.took, m.waiters, m.events, stored, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// served counts a request. One that reached no operation has none.
func (m *metrics) served(r *route, status int, took time.Duration) {
	if status == 0 {
		status = 200
	}
	op := r.id
	if op == "" {
		op = "none"
	}
	m.requests.WithLabelValues(op, strconv.Itoa(status)).Inc()
	m.took.WithLabelValues(op).Observe(took.Seconds())
}

func (m *metrics) waits() (done func()) {
	m.waiters.Inc()
	return m.waiters.Dec
}

func (m *metrics) text() ([]byte, error) {
	families, err := m.all.Gather()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range families {
		if err := e.Encode(f); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// Observe counts an event. Give the server to the engines as an observer.
func (s *Server) Observe(e event.Event) { s.metrics.events.WithLabelValues(string(e.Type)).Inc() }

// Gauge adds a figure to the server's, read when it is asked for. Figures of one name
// differ in their labels' values.
func (s *Server) Gauge(name, help string, labels map[string]string, value func() float64) {
	s.metrics.all.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value))
}
