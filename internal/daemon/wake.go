package daemon

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/placet-dev/placet/channel/command"
	"github.com/placet-dev/placet/channel/webhook"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/process"
)

// passOfDeliveries is how often the dispatcher comes round.
const passOfDeliveries = time.Second

// makeDispatcher makes the ways to wake targets, and what carries messages out on them.
func (d *daemon) makeDispatcher(hear event.Observer) {
	d.delivering = newPulse("deliveries", passOfDeliveries, d.c)
	d.pulses = append(d.pulses, d.delivering)
	if d.channels = d.c.channels; d.channels == nil {
		d.channels = delivery.Channels{
			delivery.KindWebhook: webhook.New(webhook.Options{AllowPrivate: d.c.WakePrivate, AllowHTTP: d.c.WakeHTTP, Log: d.c.Log}),
		}
		if d.c.Program != nil { // who may start jobs may have programs run
			d.channels[delivery.KindCommand] = command.New(command.Options{Dir: filepath.Dir(d.home.begin), Minder: append(slices.Clone(d.c.Program), command.MinderWord)})
		}
	}
	d.dispatcher = &delivery.Dispatcher{
		Store: d.st, Channels: d.channels, Owner: process.Self().String(), Observer: hear, Alive: d.delivering.beat, Log: d.c.Log, Drain: d.c.Drain / 2,
	}
}

// beginDeliveries brings events to their targets until end is called, which waits for
// what is under way, for as long as its context lasts.
func (d *daemon) beginDeliveries() (end func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.dispatcher.Loop(ctx)
	}()
	return func(ctx context.Context) error {
		stop()
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
