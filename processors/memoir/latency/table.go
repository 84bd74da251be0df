package latency

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// maxTools is how many tools a Table keeps. A model can invent names.
const maxTools = 10_000

// Table has the aggregates of all tools of an agent, in one process, whichever instances run the group. It follows the table of
// Graph and is some milliseconds behind it. Its methods are safe for concurrent use.
type Table struct {
	follower *processors.Follower

	mu      sync.Mutex
	tools   map[string]Aggregate
	leftOut bool
}

// Follow returns the table of an agent's tools. It connects only in Run. It accepts the options of processors.New; those for
// groups, tables and topics have no effect. The error wraps processors.ErrConfig if an option is invalid.
func Follow(brokers []string, agent string, opts ...processors.Option) (*Table, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("latency: %w", err)
	}
	t := newTable()
	table := string(goka.GroupTable(catalog.LatenciesGroup()))
	if t.follower, err = processors.NewTableFollower(brokers, []string{table}, t.take, opts...); err != nil {
		return nil, fmt.Errorf("latency: %w", err)
	}
	return t, nil
}

func newTable() *Table { return &Table{tools: map[string]Aggregate{}} }

// Run reads the table. It blocks until ctx ends and then returns nil; after a failure it retries. Call it once.
func (t *Table) Run(ctx context.Context) error { return t.follower.Run(ctx) }

// Ready returns a channel that is closed once Run has read the rows that existed when it connected.
func (t *Table) Ready() <-chan struct{} { return t.follower.Ready() }

// Get returns the aggregate of a tool. ok is false if it has no row, or was left out.
func (t *Table) Get(tool string) (a Aggregate, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, ok = t.tools[tool]
	return a, ok
}

// All returns the aggregates of all tools, by name. complete is false if some were left out: a Table keeps 10,000 tools, and no
// row that it cannot decode, such as one of a newer build.
func (t *Table) All() (all []Aggregate, complete bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all = slices.SortedFunc(maps.Values(t.tools), func(a, b Aggregate) int { return strings.Compare(a.Tool, b.Tool) })
	return all, !t.leftOut
}

// take takes a record of the group's table.
func (t *Table) take(r processors.Inbound) {
	tool := string(r.Key)
	if r.Value == nil {
		t.remove(tool, false)
		return
	}
	row, err := rowFormat.Unmarshal(r.Value)
	if err != nil {
		t.remove(tool, true)
		return
	}
	a, err := aggregateOf(tool, row)
	if err != nil {
		t.remove(tool, true)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.tools[tool]; !known && len(t.tools) >= maxTools {
		t.leftOut = true
		return
	}
	t.tools[tool] = a
}

func (t *Table) remove(tool string, leftOut bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.tools, tool)
	t.leftOut = t.leftOut || leftOut
}
