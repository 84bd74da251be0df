package turn

import (
	"fmt"
	"strings"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
)

// TableCodec returns the codec of Graph's table, for a goka.View.
func TableCodec() goka.Codec { return turnrow.Table.Codec() }

// Describe formats a session's state for people: ids, sizes, deadlines, and what the session waits for. It includes no
// text of the conversation. The row is a value of the table, as Processor.Get and a goka.View with TableCodec return
// it; nil is a session without a row.
func Describe(row any) (string, error) {
	s, err := stateOf(row)
	if err != nil {
		return "", err
	}
	return describe(s), nil
}

func describe(s *turnrow.State) string {
	if s == nil {
		return "no state\n"
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("history: %d messages, %d bytes", s.HistoryLength, lengthOf(s.HistoryParts)+len(s.History))
	if n := hiddenSize(s); n > 0 {
		line("hidden: %d bytes", n)
	}
	if s.Cost != nil {
		line("cost: %v", *s.Cost)
	}
	describeTurn(line, s.Turn)
	for i, a := range s.Waiting {
		line("waiting %d: turn %s%s, %d bytes", i+1, a.TurnId, request(a.RequestId), len(a.Input))
	}
	for _, h := range s.Early {
		line("early%s: %s %d bytes, expires %s", stepAwaited(h), h.Kind, len(h.Value), at(h.ExpiresMs))
	}
	for _, g := range s.OtherGates {
		line("gate %s of turn %s, expires %s", g.GateId, g.TurnId, at(g.ExpiresMs))
	}
	for _, r := range s.Routes {
		line("route%s: %d bytes, expires %s", request(r.RequestId), len(r.ReplyTo), at(r.ExpiresMs))
	}
	line("remembered: %d records, %d request ids, %d calls and results, %d steps",
		(lengthOf(s.CausesParts)+len(s.Causes))/memorySize, (lengthOf(s.RequestsParts)+len(s.Requests))/memorySize,
		(lengthOf(s.CallsParts)+len(s.Calls))/memorySize,
		min((lengthOf(s.StepsParts)+len(s.Steps))/stepSize, maxSteps))
	line("next deadline: %s", at(s.DeadlineMs))
	return b.String()
}

func describeTurn(line func(string, ...any), t *turnrow.OpenTurn) {
	if t == nil {
		line("turn: none")
		return
	}
	message, waits := t.Message, "the model"
	if message == nil {
		message = &turnrow.Accepted{} // this package writes no such row; describe a damaged one as far as possible
	}
	switch {
	case len(t.Calls) > 0:
		waits = "tools"
	case t.Compaction != nil:
		waits = "the compactor"
	}
	until := at(t.DeadlineMs)
	if t.StoppedMs != 0 {
		until += ", stopped at " + at(t.StoppedMs)
	}
	line("turn %s%s: step %d waits for %s until %s", message.TurnId, request(message.RequestId), t.Step, waits, until)
	for i, c := range t.Calls {
		state := "open"
		switch {
		case c.Gate != nil:
			state = fmt.Sprintf("waits for gate %s until %s", c.Gate.GateId, at(c.Gate.ExpiresMs))
		case c.DeadlineMs != 0 && !ended(c):
			state = "approved, open until " + at(c.DeadlineMs)
		case ended(c):
			state = fmt.Sprintf("ended, %d bytes", c.ResultLength)
			if r := resultOfCall(t, c); r != nil {
				state = fmt.Sprintf("%s, %d bytes", r.GetStatus(), len(r.Result))
			}
		}
		line("  call %d: %s %q: %s", i, c.GetName(), c.GetToolUseId(), state)
	}
	for _, h := range t.Held {
		line("  held: %q, %d bytes", h.ToolUseId, len(h.Value))
	}
}

// stepAwaited formats the step that a held record names; "" if it names none.
func stepAwaited(h *turnrow.Held) string {
	if h.TurnId == "" {
		return ""
	}
	return fmt.Sprintf(" for turn %s step %d", h.TurnId, h.Step)
}

func request(id *string) string {
	if id == nil {
		return ""
	}
	return fmt.Sprintf(" (request %q)", *id)
}

func at(ms int64) string {
	if ms == 0 {
		return "none"
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}
