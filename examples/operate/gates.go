package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/turntable-streams/turntable/processors/gate"
)

// gatesCommand lists what waits for a person.
type gatesCommand struct {
	Session string `help:"Only gates of this session."`
	All     bool   `help:"Also gates that have ended, for as long as the table keeps them."`
}

// gateList is the JSON of the command gates. It has no texts and no digests.
type gateList struct {
	Agent string      `json:"agent"`
	Gates []gate.View `json:"gates"`
}

func (c *gatesCommand) Run(ctx context.Context, o *operator) error {
	if _, err := o.connect(ctx); err != nil {
		return err
	}
	list := gateList{Agent: o.agent, Gates: []gate.View{}}
	table := tableOf(o.cluster.catalog.GateGroup())
	all := newRows(gate.TableCodec(), func(session string, row any) ([]gate.View, error) { // arguments of all gates can be much
		views, err := gate.Gates(session, row)
		for i, v := range views {
			views[i] = withoutTexts(v)
		}
		return views, err
	})
	if err := readAll(ctx, o, table, all); err != nil {
		return err
	}
	all.warn(o, table)
	for session, views := range all.byKey {
		for _, v := range views {
			if (c.Session == "" || session == c.Session) && (c.All || v.Outcome == nil) {
				list.Gates = append(list.Gates, v)
			}
		}
	}
	slices.SortFunc(list.Gates, func(a, b gate.View) int {
		return cmp.Or(compareTimes(a.RequestedAt, b.RequestedAt), cmp.Compare(a.GateID, b.GateID))
	})
	return o.print(list, func(t *columns) {
		t.line("GATE", "SESSION", "KIND", "TOOL", "DANGEROUS", "STATUS", "REQUESTED", "EXPIRES")
		for _, v := range list.Gates {
			t.line(v.GateID, v.SessionID, v.Kind, v.Tool, v.Dangerous, v.Status, t.at(v.RequestedAt), t.at(v.ExpiresAt))
		}
	})
}
