package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/turntable-streams/turntable/processors/turn"
)

// sessionsCommand lists the sessions of the turn's table.
type sessionsCommand struct {
	Open  bool   `help:"Only sessions with an open turn or waiting messages."`
	Waits string `enum:",model,tools,gates,compactor" default:"" help:"Only sessions whose turn waits for this: model, tools, gates or compactor."`
	All   bool   `help:"Also sessions of which only what they remember is left."`
	Limit int    `help:"The most sessions to list, those that changed last first; 0 for all."`
}

// sessionList is the JSON of the command sessions.
type sessionList struct {
	Agent    string      `json:"agent"`
	Total    int         `json:"total"`
	Sessions []turn.View `json:"sessions"`
}

func (c *sessionsCommand) Run(ctx context.Context, o *operator) error {
	cluster, err := o.connect(ctx)
	if err != nil {
		return err
	}
	all := newRows(turn.TableCodec(), turn.Inspect)
	if err := readAll(ctx, o, cluster.catalog.Table(), all); err != nil {
		return err
	}
	all.warn(o, cluster.catalog.Table())
	list := sessionList{Agent: o.agent, Sessions: []turn.View{}}
	for _, v := range all.byKey {
		if c.wants(v) {
			list.Sessions = append(list.Sessions, v)
		}
	}
	list.Total = len(list.Sessions)
	slices.SortFunc(list.Sessions, func(a, b turn.View) int {
		return cmp.Or(compareTimes(b.ChangedAt, a.ChangedAt), cmp.Compare(a.SessionID, b.SessionID))
	})
	if c.Limit > 0 && len(list.Sessions) > c.Limit {
		list.Sessions = list.Sessions[:c.Limit]
	}
	return o.print(list, func(t *columns) {
		t.line("SESSION", "STATE", "WAITING", "MESSAGES", "BYTES", "COST", "CHANGED", "DEADLINE")
		for _, v := range list.Sessions {
			t.line(v.SessionID, stateOf(v), len(v.Waiting), v.Messages, v.HistoryBytes+v.HiddenBytes, costOf(v.Cost), t.at(v.ChangedAt),
				t.at(v.DeadlineAt))
		}
		if n := list.Total - len(list.Sessions); n > 0 {
			t.line(fmt.Sprintf("and %d more", n))
		}
	})
}

func (c *sessionsCommand) wants(v turn.View) bool {
	open := v.Turn != nil || len(v.Waiting) > 0
	switch {
	case c.Open && !open:
		return false
	case c.Waits != "" && (v.Turn == nil || v.Turn.WaitsFor != c.Waits):
		return false
	}
	return c.All || !empty(v)
}

// empty reports whether nothing but what it remembers is left of a session.
func empty(v turn.View) bool {
	return v.Turn == nil && len(v.Waiting) == 0 && v.Messages == 0 && v.HiddenBytes == 0
}

// stateOf is the state of a session for people.
func stateOf(v turn.View) string {
	if v.Turn == nil {
		return "idle"
	}
	return fmt.Sprintf("step %d waits for %s", v.Turn.Step, v.Turn.WaitsFor)
}

func costOf(dollars *float64) string {
	if dollars == nil {
		return ""
	}
	return fmt.Sprintf("$%.4f", *dollars)
}
