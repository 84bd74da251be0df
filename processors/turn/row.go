package turn

import (
	"cmp"
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
)

// A row that an older build would misinterpret has a higher version, which that build refuses to read. A new field alone
// does not need a higher version, because unknown fields survive a rewrite.
const (
	// rowVersion is the format of new rows. Since version 2 a row may have parts.
	rowVersion = 2
	// rowSteps is the format of a row whose steps have parts. An older build would not see the steps in the parts, and
	// would take a late response to one of them for the answer to the open step.
	rowSteps = 3
	// rowTurn is the format of a row whose open turn has results, or a tail with parts. An older build would wait for
	// results that have arrived, and ask the model without them.
	rowTurn = 4
	// rowHeld is the format of a row that holds records for later steps, or records whose results are decoded from their
	// values. An older build would never apply them, and would wait for answers that have arrived.
	rowHeld = 5
	// rowHidden is the format of a row that has hidden exchanges, or waits for the compactor. An older build would not
	// delete the exchanges with the session, and would wait for a response to a step that was not sent.
	rowHidden = 6
	// rowPrompt is the format of a row whose prompt has parts. An older build would answer for a worker that omits its input
	// without the prompt, and would never delete the parts.
	rowPrompt = 7
	// rowGates is the format of a row whose turn waits for gates, or has a call that was approved. An older build would not
	// hand out an approved call, and would end calls and steps at the wrong time.
	rowGates = 8
	// rowChannels is the format of a row with a message of a channel or a delegation. An older build would send its output
	// nowhere, or to the route of another message.
	rowChannels = 9
	// rowMemoir is the format of a row whose session ends by inactivity. An older build would not end it, and would keep the
	// name of a turn after which another one followed.
	rowMemoir = 10
	// rowStream is the format of a row whose open turn writes events. An older build would not end its stream.
	rowStream = 11
	// rowBound is the format of a row with an open route that serves one message only. An older build would give it to another.
	rowBound = turnrow.Version
)

// formatOf returns the lowest row version that can represent this state.
func formatOf(s *turnrow.State) uint32 {
	switch t := s.Turn; {
	case slices.ContainsFunc(s.Routes, func(r *turnrow.ReplyRoute) bool { return r.TurnId != "" }):
		return rowBound
	case t.GetStream() != nil:
		return rowStream
	case s.LastTurn != "":
		return rowMemoir
	case hasChannels(s):
		return rowChannels
	case hasGates(s):
		return rowGates
	case len(t.GetPromptParts()) > 0:
		return rowPrompt
	case hiddenSize(s) > 0 || t.GetCompaction() != nil:
		return rowHidden
	case len(s.Early) > 0 || holdsValues(t):
		return rowHeld
	case t != nil && len(t.TailParts)+len(t.ResultsParts)+len(t.Results) > 0:
		return rowTurn
	case len(s.StepsParts) > 0:
		return rowSteps
	case partsSize(s) > 0: // builds without parts would read this row as a session without history and memories
		return rowVersion
	default:
		return min(s.Version, rowVersion)
	}
}

// hasGates reports whether the session has open gates, calls that were approved, or held outcomes.
func hasGates(s *turnrow.State) bool {
	t := s.Turn
	return len(s.OtherGates) > 0 || t.GetStoppedMs() != 0 || slices.ContainsFunc(t.GetCalls(), gated) ||
		slices.ContainsFunc(t.GetHeld(), isOutcome) || slices.ContainsFunc(s.Early, isOutcome)
}

// hasChannels reports whether the session has an unfinished message of a channel or a delegation.
func hasChannels(s *turnrow.State) bool {
	return fromChannel(s.Turn.GetMessage()) || slices.ContainsFunc(s.Waiting, fromChannel)
}

// fromChannel reports whether the row stores anything of a message that is only known since rows have channels.
func fromChannel(a *turnrow.Accepted) bool {
	return len(a.GetOrigin())+len(a.GetTask())+len(a.GetEphemeralPrompt()) > 0 || a.GetDepth() != 0 || a.GetResult() || a.GetNoRoute()
}

func isOutcome(h *turnrow.Held) bool { return h.Kind == turnrow.Held_GATE_OUTCOME }

// gated reports whether a call has or had a gate.
func gated(c *turnrow.Call) bool { return c.Gate != nil || c.DeadlineMs != 0 || c.Edited }

// holdsValues reports whether the turn holds records whose results are decoded from their values.
func holdsValues(t *turnrow.OpenTurn) bool {
	return t != nil && slices.ContainsFunc(t.Held, func(h *turnrow.Held) bool { return h.Result == nil })
}

// hiddenSize returns the size of the hidden exchanges in bytes.
func hiddenSize(s *turnrow.State) int { return lengthOf(s.HiddenParts) + len(s.Hidden) }

func ended(c *turnrow.Call) bool { return c.Result != nil || c.ResultLength > 0 }

// callDeadline returns when an open call times out, in milliseconds since the epoch.
func callDeadline(t *turnrow.OpenTurn, c *turnrow.Call) int64 {
	if c.Gate != nil {
		return c.Gate.ExpiresMs
	}
	return cmp.Or(c.DeadlineMs, t.DeadlineMs)
}

// callsDeadline returns when the first of the open calls times out, in milliseconds since the epoch.
func callsDeadline(t *turnrow.OpenTurn) (earliest int64) {
	for _, c := range t.Calls {
		if at := callDeadline(t, c); !ended(c) && (earliest == 0 || at < earliest) {
			earliest = at
		}
	}
	return cmp.Or(earliest, t.DeadlineMs)
}
