// Package agenttest tests an agent in ten lines: without a broker, a model, a network or a wait.
//
// New runs the groups of an agent of package agent, its own tools (the functions of Config.Tools) and a model whose replies
// the test scripts, in one order and with a clock that only the test moves. This is a complete test file:
//
//	package main
//
//	import (
//		"context"
//		"testing"
//
//		"github.com/stretchr/testify/require"
//
//		"github.com/turntable-streams/turntable/processors/agent"
//		"github.com/turntable-streams/turntable/processors/agent/agenttest"
//		"github.com/turntable-streams/turntable/processors/approval"
//		"github.com/turntable-streams/turntable/processors/turn/think"
//		"github.com/turntable-streams/turntable/processors/turn/tools"
//	)
//
//	type order struct {
//		Number int `json:"order"`
//	}
//
//	func Test(t *testing.T) {
//		var refunded []int
//		refund := tools.New("refund", "Pays an order back.", func(_ context.Context, o order) (string, error) {
//			refunded = append(refunded, o.Number)
//			return "refunded", nil
//		})
//		support, err := agent.New("support", agent.Config{
//			Model: think.Func(nil), // is not called: the test scripts the replies
//			Tools: []tools.Tool{refund}, Approval: &approval.Policy{},
//		})
//		require.NoError(t, err)
//
//		s := agenttest.New(t, support)
//		s.Model(agenttest.Call("refund", `{"order":7}`))
//		s.Say("session-1", "Refund order 7")
//		require.Empty(t, refunded)
//		s.Approve("session-1")
//		require.Equal(t, []int{7}, refunded)
//		s.Model(think.Say("Done."))
//		require.Equal(t, "Done.", s.Answer("session-1").Content)
//	}
//
// Package agent has more examples. Each method does its part and then lets the agent run until it waits for the model, a person,
// the clock or a tool that the test holds.
//
//	the user           Say, Write, Answer, Failure
//	the model          Model, ModelFails, Asked, LastAsked
//	the tools          run; Replace, Hold, Release, Calls
//	people             Approve, Edit, Deny, Expire, Gate, Gates, Decide
//	time and crashes   Advance, Commit, Crash
//	all else           Driver: the records and tables of package processortest
//
// # What fails a test
//
// What the test did not expect:
//
//   - a scripted reply that the model was not asked for, or that calls a tool which the agent does not have,
//   - a panic of a tool that the test has not replaced, and a function that ends its goroutine, as t.FailNow does,
//   - an output that is written twice, or a call of a tool that is made twice, without a Crash in between,
//   - a turn that has not ended when the test ends: the model has no scripted reply or is asked again later, a tool has no
//     result, or a gate is open. A turn may wait for people if the test has read its gates with Gate or Gates,
//   - an answer, an error or another output that the test did not read, and a dead letter,
//   - everything that fails a test of package processortest.
//
// Tests need not read the outputs that only readers outside of the agent use: the batch messages, the outcomes of gates, the
// costs, the spending and the latencies, the states of delegations, the audit of peers, the memories, the ends of sessions,
// and the records that say that all tools of a step have ended. A test can read them with Driver.
//
// # Crashes
//
// Crash kills the agent. It loses what was not committed: all that happened since the clock last moved, or since Commit. The
// tables are as they were then, and all records since are delivered again. A call of the model or of a tool that was open is
// interrupted and made again with the same key; a call that had published its reply or its result is not made again, as in
// production, where the worker looks for it on its topic. The test shows that the agent answers all the same, once.
//
// # What it does not show
//
// Config.Model is not called, and what it streams is not played: the turn writes the events of the scripted replies. Tools
// run to their end at once, one after the other, and their context ends as in production except at the deadline: a tool that
// waits for the end of its context blocks the test, so hold or replace it. Calls that the agent makes in production to
// services, peers and other agents are outputs here. Limits and pauses of a rate-limited model are not played. The doors have
// tests of their own; package processortest says what only a broker can show.
package agenttest
