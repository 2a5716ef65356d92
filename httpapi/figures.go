package httpapi

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/txn"
)

// figures are what the store tells of its space each time it is asked: counters of its
// own, and counts through indexes.
type figures struct {
	store txn.Store
	space string
	log   *slog.Logger
}

// figuresWithin bounds how long the store may take.
const figuresWithin = 5 * time.Second

var (
	storeAnswers = prometheus.NewDesc("placet_store_answers", "1: the store was read for the figures that come from it; 0: it did not answer, and they are left out.", nil, nil)
	pending      = prometheus.NewDesc("placet_pending", "Decisions that wait for a person.", []string{"type"}, nil)
	unspent      = prometheus.NewDesc("placet_approved_not_run", "Yeses that nobody has acted on, by what waits on them.", []string{"owner"}, nil)
	deliveries   = prometheus.NewDesc("placet_deliveries", "Deliveries that have not arrived, by status.", []string{"status"}, nil)
	jobCount     = prometheus.NewDesc("placet_jobs", "Jobs, by status.", []string{"status"}, nil)
)

// Describe is prometheus.Collector's.
func (f figures) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{storeAnswers, pending, unspent, jobCount, deliveries} {
		to <- d
	}
}

// counted is one reading.
type counted struct {
	approvals, calls, runs int64
	jobs                   job.Counts
	deliveries             map[delivery.Status]int64
}

// Collect is prometheus.Collector's.
func (f figures) Collect(to chan<- prometheus.Metric) {
	one := func(d *prometheus.Desc, n int64, label ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), label...)
	}
	n, err := f.read()
	if err != nil {
		f.log.Warn("the store's figures could not be read", "error", err)
		one(storeAnswers, 0)
		return
	}
	one(storeAnswers, 1)
	one(pending, n.approvals, "approval")
	one(pending, n.jobs.Asked, "question")
	one(unspent, n.calls, "call")
	one(unspent, n.runs, "run")
	for _, s := range job.Statuses() {
		one(jobCount, n.jobs.ByStatus[s], string(s))
	}
	for _, s := range delivery.Statuses() {
		if s != delivery.Delivered {
			one(deliveries, n.deliveries[s], string(s))
		}
	}
}

func (f figures) read() (n counted, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), figuresWithin)
	defer cancel()
	err = txn.View(ctx, f.store, func(tx call.Tx) error {
		n = counted{}
		if n.approvals, err = tx.Pending(f.space, 0); err != nil {
			return err
		}
		n.calls, n.runs, err = tx.CountGrants(f.space)
		return err
	})
	if err != nil {
		return n, err
	}
	err = txn.View(ctx, f.store, func(tx job.Tx) error {
		n.jobs, err = tx.CountJobs(f.space)
		return err
	})
	if err != nil {
		return n, err
	}
	err = txn.View(ctx, f.store, func(tx delivery.Tx) error {
		n.deliveries, err = tx.CountDeliveries(f.space)
		return err
	})
	return n, err
}
