package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/turntable-streams/turntable/processors/operations"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// cancelCommand ends a turn with an error output.
type cancelCommand struct {
	Session string `arg:"" help:"ID of the session."`
	Request string `help:"Only the message with this request ID: the open turn's, or a waiting one."`
	Reason  string `help:"Reason, which the output states."`
	NoWait  bool   `help:"Do not wait until the group has done it."`
}

// purgeCommand ends a session and deletes its state.
type purgeCommand struct {
	Session string `arg:"" help:"ID of the session."`
	Reason  string `help:"Reason, which the outputs of unfinished messages state."`
	Yes     bool   `short:"y" help:"Do not ask for confirmation."`
	NoWait  bool   `help:"Do not wait until the group has done it."`
}

// endCommand ends an idle session.
type endCommand struct {
	Session string `arg:"" help:"ID of the session."`
	NoWait  bool   `help:"Do not wait until the group has done it."`
}

// controlResult is the JSON of the commands cancel, purge and end.
type controlResult struct {
	Agent     string `json:"agent"`
	SessionID string `json:"session_id"`
	Action    string `json:"action"`
	TurnID    string `json:"turn_id,omitempty"` // the turn that was canceled
	Done      bool   `json:"done"`              // false with --no-wait
}

func (c *cancelCommand) Run(ctx context.Context, o *operator) error {
	var turnID, requestID string // of the message that is to end
	return control{
		session: c.Session, record: topics.Control{Action: topics.ActionCancel, Reason: text(c.Reason)},
		noWait: c.NoWait,
		check: func(v turn.View, record *topics.Control) (string, error) {
			turnID, requestID = c.target(v)
			record.RequestID = text(requestID) // so that the record ends no later turn
			if turnID == "" && c.Request != "" {
				return "", fmt.Errorf("session %s has no open or waiting message with the request ID %q: it has ended; see turntable show", c.Session, c.Request)
			} else if turnID == "" {
				return "", fmt.Errorf("session %s has no open turn, so there is nothing to cancel; see turntable show", c.Session)
			}
			return turnID, nil
		},
		done: func(v turn.View) bool {
			open := v.Turn != nil && v.Turn.TurnID == turnID
			return !open && !slices.ContainsFunc(v.Waiting, func(w turn.WaitingView) bool { return w.TurnID == turnID })
		},
	}.run(ctx, o)
}

// target returns the turn of the message that the command names, and the message's request ID, if it has one.
func (c *cancelCommand) target(v turn.View) (turnID, requestID string) {
	if v.Turn != nil && (c.Request == "" || v.Turn.RequestID == c.Request) {
		return v.Turn.TurnID, v.Turn.RequestID
	}
	for _, w := range v.Waiting {
		if c.Request != "" && w.RequestID == c.Request {
			return w.TurnID, w.RequestID
		}
	}
	return "", ""
}

func (c *purgeCommand) Run(ctx context.Context, o *operator) error {
	return control{
		session: c.Session, record: topics.Control{Action: topics.ActionPurge, Reason: text(c.Reason)}, noWait: c.NoWait,
		check: func(turn.View, *topics.Control) (string, error) {
			return "", o.confirm(ctx, c.Yes, "Purge the session %s of %s? Its conversation cannot be restored.", c.Session, o.agent)
		},
		done: empty,
	}.run(ctx, o)
}

func (c *endCommand) Run(ctx context.Context, o *operator) error {
	return control{
		session: c.Session, record: topics.Control{Action: topics.ActionEnd}, noWait: c.NoWait,
		check: func(v turn.View, _ *topics.Control) (string, error) {
			switch {
			case !o.cluster.has("memoir"):
				return "", fmt.Errorf("the agent %s has no memory, so its sessions do not end: turntable purge deletes one", o.agent)
			case v.Turn != nil || len(v.Waiting) > 0:
				return "", fmt.Errorf("session %s has an open turn: wait for it, or use turntable cancel", c.Session)
			}
			return "", nil
		},
		done: empty,
	}.run(ctx, o)
}

// control writes a record to session-control and waits until the row of the session shows its effect.
type control struct {
	session string
	record  topics.Control
	noWait  bool
	// check returns whether the record would have an effect, and the turn that it is about. It may complete the record.
	check func(turn.View, *topics.Control) (turnID string, err error)
	done  func(turn.View) bool
}

func (c control) run(ctx context.Context, o *operator) error {
	cluster, err := o.connect(ctx)
	if err != nil {
		return err
	}
	table := cluster.catalog.Table()
	reads, err := o.reader(ctx, table)
	if err != nil {
		return err
	}
	defer reads.close()
	one := newRows(turn.TableCodec(), turn.Inspect)
	if err := reads.of(ctx, c.session, one.only(c.session)); err != nil {
		return err
	}
	view, found, err := one.one(c.session)
	switch {
	case err != nil && c.record.Action != topics.ActionPurge: // a purge also deletes a row that cannot be read
		return err
	case err == nil && !found:
		return fmt.Errorf("%s has no session %q: see turntable sessions; it may have been purged", o.agent, c.session)
	}
	result := controlResult{Agent: o.agent, SessionID: c.session, Action: c.record.Action}
	if result.TurnID, err = c.check(view, &c.record); err != nil {
		return err
	}
	out, err := operations.Control(cluster.catalog, c.session, c.record, cmp.Or(result.TurnID, rand.Text()), account())
	if err != nil {
		return err
	}
	if err := cluster.to.Publish(ctx, out); err != nil {
		return publishFailed(ctx, err)
	}
	if !c.noWait {
		o.waiting("waiting until %s has done it", cluster.catalog.Group())
		err := reads.await(ctx, c.session, one.only(c.session), func() bool {
			v, found, err := one.one(c.session)
			return err == nil && (!found || c.done(v))
		})
		if err != nil {
			return lateGroup(ctx, err, string(cluster.catalog.Group()))
		}
		result.Done = true
	}
	return o.print(result, func(t *columns) {
		t.line(c.record.Action, c.session, map[bool]string{true: "done", false: "written"}[result.Done])
	})
}

// lateGroup explains that a group has not handled a record, which stays in its topic.
func lateGroup(ctx context.Context, err error, group string) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("the record is written, but its effect was not seen: %w; check that a process with the group %s runs, and turntable lag; "+
		"the group will still handle the record, or has refused it: see turntable dead", context.Cause(ctx), group)
}

func publishFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: whether the record is written is not known: look before you try again", context.Cause(ctx))
	}
	return err
}

// text returns nil for an empty text.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
