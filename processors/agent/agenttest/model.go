package agenttest

import (
	"context"

	"github.com/turntable-streams/turntable/processors/turn/think"
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
func (s *Agent) Asked() []think.Step { return s.asked }

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
	return next.reply, next.err
}
