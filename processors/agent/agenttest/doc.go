// Package agenttest tests an agent in ten lines: without a broker, a model, a network or a wait.
//
// New runs the groups of an agent of package agent, its own tools (the functions of Config.Tools) and a model whose replies
// the test scripts, in one order and with a clock that only the test moves. A test reads like the story that it tells:
//
//	s := agenttest.New(t, support)
//	s.Model(agenttest.Call("refund", `{"order":7}`))
//	s.Say("session-1", "Refund order 7")
//	s.Approve("session-1")
//	s.Model(think.Say("Done."))
//	require.Equal(t, "Done.", s.Answer("session-1").Content)
//
// Each method does its part and then lets the agent work until it waits for the model, a person, the clock or a tool that the
// test holds.
//
//	the user           Say, Write, Answer, Failure
//	the model          Model, ModelFails, Asked
//	the tools          run; Replace, Hold, Release, Calls
//	people             Approve, Edit, Deny, Expire, Gate, Decide
//	time and crashes   Advance, Commit, Crash
//	all else           Driver: the records and tables of package processortest
//
// # What fails a test
//
// What the test did not expect: a question to the model that has no scripted reply, a reply that the model was not asked
// for, an answer or another output that the test did not read, a dead letter, and everything that fails a test of package
// processortest. Outputs that only readers outside of the agent use are not expected to be read: the batch messages, the
// events of gates, costs and latencies, and what tells that all tools of a step have ended. A test can read them with Driver.
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
