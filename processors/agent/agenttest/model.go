package agenttest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// scripted is what the model answers once.
type scripted struct {
	reply think.Reply
	err   error
}

// Model scripts the next replies of the model, one for each time that it is asked, whatever the session. A question that was
// asked before gets its reply now. think.Say makes a reply with a text, Call one with a call of a tool, and Together joins
// them. A think.Reply can also have tokens and a cost, for tests of budgets.
func (s *Agent) Model(replies ...think.Reply) {
	s.tb.Helper()
	for _, r := range replies {
		s.script = append(s.script, scripted{reply: r})
	}
	s.work()
}

// ModelFails scripts an error as the next reply of the model. The turn ends with it (Failure), unless it is a
// *think.Unavailable: the model is then asked again when the clock has moved by its After, and at least by half a second.
func (s *Agent) ModelFails(err error) {
	s.tb.Helper()
	s.script = append(s.script, scripted{err: err})
	s.work()
}

// Asked returns the steps that the model was asked for so far, in order. A step that was asked for again, after a crash or a
// think.Unavailable, is in it again, with the same Key.
func (s *Agent) Asked() []think.Step {
	s.tb.Helper()
	s.work()
	return s.asked
}

// LastAsked returns the last step that the model was asked for. Its Input is what the model was told last: the message of the
// user, or the results of tools. It fails the test if the model was not asked.
func (s *Agent) LastAsked() think.Step {
	s.tb.Helper()
	asked := s.Asked()
	if len(asked) == 0 {
		s.tb.Fatalf("agenttest: the model was not asked")
	}
	return asked[len(asked)-1]
}

// Call returns a reply of the model that calls a tool. input is a JSON object. The call gets an ID of its own.
func Call(tool, input string) think.Reply {
	return think.Reply{Blocks: []think.Block{{Call: &think.Call{Name: tool, Input: topics.Raw(input)}}}}
}

// Together returns one reply with the texts and calls of several: calls of one reply run in parallel. Tokens are added up;
// the cost and the state are those of the last reply that has one.
func Together(replies ...think.Reply) (all think.Reply) {
	for _, r := range replies {
		all.Blocks = append(all.Blocks, r.Blocks...)
		all.InputTokens, all.OutputTokens = all.InputTokens+r.InputTokens, all.OutputTokens+r.OutputTokens
		if r.Cost != nil {
			all.Cost = r.Cost
		}
		if r.State != nil {
			all.State = r.State
		}
	}
	return all
}

// think is the model of the agent.
func (s *Agent) think(ctx context.Context, step think.Step) (think.Reply, error) {
	c := callFrom(ctx)
	step.Deadline = c.due(step.Deadline)
	again := step.Retried
	step.Retried = func(err error) bool { return again(err) && !s.tooLate(c, step.Deadline, err) }
	s.asked = append(s.asked, step)
	if len(s.script) == 0 {
		answered := make(chan struct{})
		c.park(wait{model: answered})
		select {
		case <-answered:
		case <-ctx.Done():
			return think.Reply{}, context.Cause(ctx)
		}
	}
	next := s.script[0]
	s.script = s.script[1:]
	if next.err != nil && s.tooLate(c, step.Deadline, next.err) {
		return think.Reply{}, final{next.err.Error()}
	}
	s.checkTools(next.reply)
	return next.reply, next.err
}

// tooLate reports whether the model is unavailable until the deadline of its step. The worker would decide that by a later
// deadline, see leeway.
func (s *Agent) tooLate(c *call, deadline time.Time, err error) bool {
	var u *think.Unavailable
	return errors.As(err, &u) && !s.Now().Add(worker.RetryPolicy{}.Wait(c.pauses+1, err)).Before(deadline)
}

// final is the text of a think.Unavailable after which the model is not asked again.
type final struct{ text string }

func (e final) Error() string { return e.text }

// checkTools fails the test if a reply calls a tool that the agent does not have, as after a typing mistake.
func (s *Agent) checkTools(r think.Reply) {
	for _, b := range r.Blocks {
		if b.Call != nil && b.Call.Invalid == "" && s.tools[b.Call.Name] == nil && !slices.Contains(s.given, b.Call.Name) {
			s.tb.Errorf("agenttest: a scripted reply calls tool %q; the tools of agent %s are %q", b.Call.Name, s.catalog.Agent,
				slices.Concat(slices.Sorted(maps.Keys(s.tools)), s.given))
		}
	}
}
