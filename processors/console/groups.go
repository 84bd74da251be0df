package console

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/operations"
)

// groupLine is a group that runs in this process.
type groupLine struct {
	Group, State string
	Since        int64
	Restarts     int
	Error        string
	Lag          int64
	Partitions   []partitionLine
}

type partitionLine struct {
	Topic     string
	Partition int32
	Lag       int64
}

// own returns the groups that run in this process.
func (c *Console) own() (list []groupLine) {
	for _, g := range slices.Sorted(maps.Keys(c.config.Processors)) {
		h := c.config.Processors[g].Health()
		l := groupLine{Group: string(g), State: string(h.State), Since: h.Since.UnixMilli(), Restarts: h.Restarts}
		if h.Err != nil {
			l.Error = visible(h.Err.Error())
		}
		for _, topic := range slices.Sorted(maps.Keys(h.Lag)) {
			for _, p := range slices.Sorted(maps.Keys(h.Lag[topic])) {
				l.Partitions = append(l.Partitions, partitionLine{topic, p, h.Lag[topic][p]})
				l.Lag += h.Lag[topic][p]
			}
		}
		list = append(list, l)
	}
	return list
}

func groups(r *request) {
	if !r.everything() {
		r.fail(http.StatusForbidden, "This page is about all sessions: you may use some of them only.")
		return
	}
	all, at, failed := r.console.lags.get(r.now)
	r.show(http.StatusOK, "processors", page{Title: "Processors", Section: "/processors", About: "time", Body: struct {
		Own      []groupLine
		All      []operations.GroupLag
		At       int64
		Failed   string
		Topology processors.Topology
	}{r.console.own(), all, at, failed, r.console.config.Topology}})
}

const (
	// lagEvery is how often the lags of all groups are asked for while someone looks at them, and lagTimeout for how long.
	lagEvery   = 5 * time.Second
	lagTimeout = 10 * time.Second
	// watched is how long someone looks at a page.
	watched = time.Minute
)

// lags are how far the groups are behind, in all processes. They are asked for only while someone looks at them.
type lags struct {
	mu     sync.Mutex
	looked time.Time
	asked  time.Time
	at     time.Time // when all was read
	all    []operations.GroupLag
	err    error
}

// get returns the last lags, when they were read, and why they are not newer. Those that are older than someone looks at a page are
// not returned.
func (l *lags) get(now time.Time) (all []operations.GroupLag, at int64, failed string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looked = now
	if !l.at.IsZero() && now.Sub(l.at) < watched {
		all, at = l.all, l.at.UnixMilli()
	}
	switch {
	case l.err != nil:
		failed = "The brokers could not be asked for the offsets of the groups: " + visible(l.err.Error())
	case at == 0:
		failed = "The brokers are being asked for the offsets of the groups: they are on the next view of this page."
	}
	return all, at, failed
}

// put notes what the brokers have answered.
func (l *lags) put(now time.Time, all []operations.GroupLag, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked, l.err = now, err; err == nil {
		l.all, l.at = all, now
	}
}

// wanted reports whether someone looks at the lags, and they are old.
func (l *lags) wanted(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Sub(l.looked) < watched && now.Sub(l.asked) >= lagEvery
}

// readLags asks for the lags while someone looks at them, until ctx ends.
func (c *Console) readLags(ctx context.Context) {
	for clock.Sleep(ctx, c.config.Clock, lagEvery/5) {
		now := c.config.Clock.Now()
		if !c.lags.wanted(now) {
			continue
		}
		c.mu.Lock()
		brokers, options := c.brokers, c.options
		c.mu.Unlock()
		asking, cancel := context.WithTimeout(ctx, lagTimeout)
		all, err := operations.ReadLags(asking, brokers, c.catalog, options...)
		cancel()
		if err != nil {
			c.config.Logger.Warn("console cannot read the offsets of the groups", zap.Error(err))
		}
		c.lags.put(now, all, err)
		c.hints.changed("time")
	}
}

func (c *Console) logUnreadable(err error) {
	c.config.Logger.Warn("console cannot read a record", zap.String("agent", c.catalog.Agent), zap.Error(err))
}
