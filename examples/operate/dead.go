package main

import (
	"context"

	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/operations"
)

// deadCommand lists dead deliveries and dead letters.
type deadCommand struct {
	Group string `help:"Only letters of this group, for example streams or gate-streams, and no deliveries."`
	All   bool   `help:"Also letters that were requeued."`
}

// deadList is the JSON of the command dead.
type deadList struct {
	Agent      string               `json:"agent"`
	Deliveries []delivery.View      `json:"deliveries"`
	Letters    []*operations.Letter `json:"letters"`
}

func (c *deadCommand) Run(ctx context.Context, o *operator) error {
	if _, err := o.connect(ctx); err != nil {
		return err
	}
	if err := o.cluster.need(o.cluster.catalog.Table()); err != nil {
		return err
	}
	list := deadList{Agent: o.agent, Deliveries: []delivery.View{}, Letters: []*operations.Letter{}}
	var err error
	if c.Group == "" && o.cluster.has("deliveries") {
		if list.Deliveries, err = o.deliveries(ctx, isDead); err != nil {
			return err
		}
	}
	groups, err := o.letterTopics(c.Group)
	if err != nil {
		return err
	}
	for _, g := range groups {
		letters, err := o.letters(ctx, g)
		if err != nil {
			return err
		}
		for _, l := range letters {
			if c.All || l.RequeuedAt == "" {
				list.Letters = append(list.Letters, l)
			}
		}
	}
	return o.print(list, func(t *columns) {
		writeDeliveries(t, list.Deliveries)
		t.line(" ")
		t.line("LETTER", "KEY", "SOURCE", "BYTES", "AT", "REQUEUED", "REASON")
		for _, l := range list.Letters {
			t.line(l.ID, l.Key, l.Source, l.Bytes, t.at(l.At), requeuedOf(t, l), l.Reason)
		}
	})
}

func requeuedOf(t *columns, l *operations.Letter) string {
	if l.FailedAgain {
		return "failed again"
	}
	return t.at(l.RequeuedAt)
}

func isDead(v delivery.View) bool { return v.Status == delivery.StatusDead }
