package peerhttp

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// group is the publisher of the doors and the group behind them, which does what a test says. Replies reach every door.
type group struct {
	t       testing.TB
	catalog topics.Catalog

	mu       sync.Mutex
	doors    []*Replies
	commands []topics.PeerCommand
	sessions []string // of the commands
	audits   []topics.PeerAudit
	tasks    map[task]*scripted
	silent   bool          // answers nothing
	full     bool          // has no room
	err      error         // of every Publish
	block    chan struct{} // nil, or each Publish waits until it is closed
	// reply is the reply to a task at once; nil for tasks that run until finish.
	reply func(c topics.PeerCommand) *topics.PeerReply
}

// scripted is a task of the group.
type scripted struct {
	hash string
	done *topics.PeerReply
}

func newGroup(t testing.TB) *group {
	c, err := topics.For("front")
	require.NoError(t, err)
	return &group{t: t, catalog: c, tasks: map[task]*scripted{}}
}

func (g *group) Publish(ctx context.Context, records ...processors.Outbound) error {
	g.mu.Lock()
	block := g.block
	g.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return g.err
	}
	for _, r := range records {
		switch r.Topic {
		case g.catalog.PeerEvents.Name():
			d := g.catalog.PeerEvents.Codec().Unmarshal(r.Value)
			if d.Err != nil || r.Key != d.Value.InstanceID {
				g.t.Errorf("event %s with key %s: %v", r.Value, r.Key, d.Err)
			}
			g.audits = append(g.audits, d.Value)
		case g.catalog.PeerCommands.Name():
			d := g.catalog.PeerCommands.Codec().Unmarshal(r.Value)
			if d.Err != nil || len(r.Headers[topics.HeaderID]) == 0 {
				g.t.Errorf("command %s: %v", r.Value, d.Err)
			}
			g.commands, g.sessions = append(g.commands, d.Value), append(g.sessions, r.Key)
			g.command(r.Key, d.Value)
		default:
			g.t.Errorf("record for %s", r.Topic)
		}
	}
	return nil
}

// command does what the group does with a command.
func (g *group) command(session string, c topics.PeerCommand) {
	at := task{session, c.PeerID, c.InboundID, c.TaskID}
	known := g.tasks[at]
	answer := topics.PeerReply{TaskID: c.TaskID, PeerID: c.PeerID, InboundID: c.InboundID, Waiter: c.Waiter}
	switch {
	case g.silent:
		return
	case c.Kind == topics.PeerRun || c.Kind == topics.PeerDelegate:
		switch {
		case known == nil && g.full:
			answer.State = topics.PeerNoRoom
		case known == nil:
			g.tasks[at] = &scripted{hash: c.Hash}
			if g.reply == nil {
				return
			}
			if r := g.reply(c); r != nil {
				g.end(at, *r)
			}
			return
		case known.hash != c.Hash:
			answer.State, answer.Hash = topics.PeerConflict, known.hash
		case known.done != nil:
			again := *known.done
			again.Waiter = c.Waiter
			answer = again
		default:
			return
		}
	case c.Kind == topics.PeerAsk:
		switch {
		case known == nil:
			answer.State = topics.PeerUnknown
		case known.done != nil:
			answer = *known.done
			answer.Waiter = c.Waiter
		default:
			answer.State, answer.Hash = topics.PeerRunning, known.hash
		}
	case c.Kind == topics.PeerCancel && known != nil && known.done == nil:
		g.end(at, topics.PeerReply{Body: body(c.TaskID, peerwire.StatusError, "cancelled")})
		return
	default:
		return
	}
	g.tell(session, answer)
}

// end ends a task with a reply, of which it sets what identifies the task.
func (g *group) end(at task, r topics.PeerReply) {
	r.TaskID, r.PeerID, r.InboundID, r.State, r.Hash = at.taskID, at.peerID, at.inboundID, topics.PeerDone, g.tasks[at].hash
	g.tasks[at].done = &r
	g.tell(at.session, r)
}

func (g *group) tell(session string, r topics.PeerReply) {
	raw, err := g.catalog.PeerReplies.Codec().Marshal(r)
	if err != nil {
		g.t.Errorf("reply: %v", err)
	}
	for _, d := range g.doors {
		d.onRecord(processors.Inbound{Topic: g.catalog.PeerReplies.Name(), Key: []byte(session), Value: raw})
	}
}

// finish ends the task of a peer with a result.
func (g *group) finish(inboundID, taskID, result string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.end(task{session: peerwire.SessionID(inboundID, taskID), inboundID: inboundID, taskID: taskID}, topics.PeerReply{Body: body(taskID, peerwire.StatusSuccess, result)})
}

// settle ends a task for a peer.
func (g *group) settle(peerID, taskID string, r topics.PeerReply) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for at := range g.tasks {
		if at.peerID == peerID && at.taskID == taskID {
			g.end(at, r)
		}
	}
}

// body is a reply of this instance.
func body(taskID string, status peerwire.Status, text string) topics.Raw {
	r := peerwire.Reply{TaskID: taskID, PeerInstanceID: "a-1", PeerRunID: "peer_1_00000000", PeerSessionID: "s", Status: status}
	if status == peerwire.StatusSuccess {
		r.Result = text
	} else {
		r.Error = text
	}
	return r.Body()
}

// kinds returns the kinds of the commands so far.
func (g *group) kinds() (kinds []topics.PeerCommandKind) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.commands {
		kinds = append(kinds, c.Kind)
	}
	return kinds
}

// of returns the commands of a kind.
func (g *group) of(kind topics.PeerCommandKind) (list []topics.PeerCommand) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.commands {
		if c.Kind == kind {
			list = append(list, c)
		}
	}
	return list
}

// refused returns the codes of the refusals in the audit.
func (g *group) refused() (codes []string) {
	for _, r := range g.events() {
		codes = append(codes, r.Code)
	}
	return codes
}

func (g *group) events() []topics.PeerAudit {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.audits)
}

// set changes the group.
func (g *group) set(change func(*group)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(g)
}
