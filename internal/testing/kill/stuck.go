package kill

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Stuck describes what brokers know of agents with which nothing happens any more: whether records wait for their groups,
// whether open transactions hide records, and whose. Without agents it describes all.
func Stuck(ctx context.Context, brokers []string, agents ...string) string {
	if len(brokers) == 0 {
		return ""
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return err.Error()
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	r := report{ctx: ctx, admin: kadm.NewClient(client), agents: agents}
	r.groups()
	r.hidden()
	r.transactions()
	return r.String()
}

type report struct {
	strings.Builder
	ctx    context.Context
	admin  *kadm.Client
	agents []string
}

// is reports whether a name is an agent's.
func (r *report) is(name string) bool {
	return len(r.agents) == 0 ||
		slices.ContainsFunc(r.agents, func(agent string) bool { return strings.Contains(name, agent) })
}

func (r *report) add(format string, args ...any) { fmt.Fprintf(r, format+"\n", args...) }

func (r *report) failed(what string, err error) {
	if err != nil {
		r.add("%s: %v", what, err)
	}
}

func (r *report) groups() {
	listed, err := r.admin.ListGroups(r.ctx)
	r.failed("groups", err)
	var names []string
	for _, name := range listed.Groups() {
		if r.is(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		r.add("no groups")
		return
	}
	lags, err := r.admin.Lag(r.ctx, names...)
	r.failed("lags", err)
	for _, g := range lags.Sorted() {
		r.add("group %s: %s, %d members", g.Group, g.State, len(g.Members))
		r.failed("  lag", g.Error())
		for _, l := range g.Lag.Sorted() {
			if l.Lag != 0 {
				r.add("  %s/%d: committed %d, end %d", l.Topic, l.Partition, l.Commit.At, l.End.Offset)
			}
		}
	}
}

func (r *report) hidden() {
	ends, err := r.admin.ListEndOffsets(r.ctx)
	r.failed("ends", err)
	stable, err := r.admin.ListCommittedOffsets(r.ctx)
	r.failed("ends of what is committed", err)
	ends.Each(func(e kadm.ListedOffset) {
		if s, ok := stable.Lookup(e.Topic, e.Partition); ok && s.Offset != e.Offset && r.is(e.Topic) {
			r.add("hidden by a transaction: %s/%d: stable to %d, end %d", e.Topic, e.Partition, s.Offset, e.Offset)
		}
	})
}

func (r *report) transactions() {
	listed, err := r.admin.ListTransactions(r.ctx, nil, nil)
	r.failed("transactions", err)
	for _, t := range listed.Sorted() {
		if r.is(t.TxnID) {
			r.add("transaction %s: %s, producer %d", t.TxnID, t.State, t.ProducerID)
		}
	}
}
