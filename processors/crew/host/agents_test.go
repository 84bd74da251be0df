package host

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/crewtest"
	"github.com/turntable-streams/turntable/topics"
)

// Only version 1 is accepted: an agent that answers with a lower one is disconnected, like one with a higher.
func TestA01_AnotherProtocolVersionDisconnectsTheAgent(t *testing.T) {
	bothAgents(t, func(t *testing.T, command func(*testing.T, crewtest.Script) []string) {
		for _, version := range []int{0, 2} {
			r := newRig(t, command(t, crewtest.Script{Protocol: &version}))
			run := r.act(crewbody.Start{AgentID: agentID, Cwd: r.dir})
			exit := await[crewbody.Exited](r, 1)[0]
			require.Equal(t, run, exit.Run)
			failed := said[crewbody.StartFailed](r)
			require.Len(t, failed, 1)
			require.Equal(t, crewbody.StageInitialize, failed[0].Stage)
			require.True(t, failed[0].Process)
			require.Contains(t, failed[0].Error, "another version")
			require.Empty(t, said[crewbody.SessionReady](r))
		}
		r := newRig(t, command(t, crewtest.Script{Protocol: intOf(1)}))
		_, session := r.started()
		require.NotEmpty(t, session)
		require.Len(t, said[crewbody.Started](r), 1)
	})
}

func TestA02_LinesAreDecodedHoweverTheyAreRead(t *testing.T) {
	t.Run("chunks", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			want := rapid.SliceOfN(rapid.StringMatching(`[{}"a-c ä€]{0,8}`), 0, 8).Draw(t, "lines")
			text := strings.Join(want, "\n")
			var got []string
			reader := iotest.OneByteReader(strings.NewReader(text))
			if rapid.Bool().Draw(t, "whole") {
				reader = iotest.DataErrReader(strings.NewReader(text))
			}
			if err := lines(reader, 1<<20, func(line []byte) { got = append(got, string(line)) }); err != nil {
				t.Fatal(err)
			}
			var full []string
			for _, w := range want {
				if w = strings.TrimSpace(w); w != "" {
					full = append(full, w)
				}
			}
			require.Equal(t, full, got)
		})
	})
	t.Run("long", func(t *testing.T) {
		long := strings.Repeat("x", 200<<10)
		var got []string
		require.NoError(t, lines(strings.NewReader("a\n"+long+"\nb"), 1<<20, func(l []byte) { got = append(got, string(l)) }))
		require.Equal(t, []string{"a", long, "b"}, got)
		require.ErrorIs(t, lines(strings.NewReader(long), 100<<10, func([]byte) {}), errLine)
		require.NoError(t, lines(strings.NewReader("a\xffb\n"), 100, func(l []byte) { require.Equal(t, "a\uFFFDb", string(l)) }))
	})
	t.Run("process", func(t *testing.T) {
		r := newRig(t, goAgent(t, crewtest.Script{Piece: 3, Rules: []crewtest.Rule{{Steps: []crewtest.Step{
			{Text: "ä€"},
			{Line: "npm warn: no JSON"},
			{Raw: "\n\n \n"},
			{Line: `{"jsonrpc":"2.0","method":`},
			{Line: `[]`},
			{Line: `7`},
			{Text: "𝄞", Split: 1},
			{Line: `{"jsonrpc":"2.0","id":999,"result":{}}`},
			{Text: "."},
		}}}}))
		run, session := r.started()
		r.prompt(run, session, "p")
		end := await[crewbody.TurnEnded](r, 1)[0]
		require.Equal(t, crewbody.TurnEnded{Run: run, PromptID: "p", StopReason: "end_turn"}, end)
		require.Equal(t, "ä€𝄞.", r.text())
		require.Len(t, said[crewbody.Problem](r), 1, "the further lines are not worth a problem each")
		require.NotContains(t, said[crewbody.Problem](r)[0].Message, "npm")
	})
}

func TestUpdatesOfAllKindsArriveUnchangedAndInOrder(t *testing.T) {
	unknown := `{"sessionUpdate":"never_seen","deep":{"a":[1,2.50,null,"ä"]},"_meta":{"x":1}}`
	bothAgents(t, func(t *testing.T, command func(*testing.T, crewtest.Script) []string) {
		r := newRig(t, command(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{
			{Thought: "hm"},
			{Text: strings.Repeat("word ", 200), Split: 7},
			{Plan: []string{"one", "two"}},
			{Usage: &[2]int64{5, 10}},
			{Tool: &crewtest.Tool{ID: "t1", Title: "Look", Kind: "read", Steps: []crewtest.Step{{Text: "inside"}}}},
			{Update: rawOf(unknown)},
		}}}}))
		run, session := r.started()
		r.prompt(run, session, "p")
		await[crewbody.TurnEnded](r, 1)
		require.Equal(t, strings.Repeat("word ", 200)+"inside", r.text())
		require.Equal(t, "hm", r.chunks("agent_thought_chunk", false))
		var kinds []string
		for _, u := range said[crewbody.Updates](r) {
			require.Equal(t, session, u.SessionID)
			require.NotZero(t, u.SentMS)
			for _, raw := range u.Updates {
				kind, _ := topics.Lookup(raw, "sessionUpdate")
				if len(kinds) == 0 || kinds[len(kinds)-1] != string(kind) {
					kinds = append(kinds, string(kind))
				}
				if string(kind) == `"never_seen"` {
					require.JSONEq(t, unknown, string(raw))
				}
			}
		}
		require.Equal(t, []string{
			`"agent_thought_chunk"`, `"agent_message_chunk"`, `"plan"`, `"usage_update"`, `"tool_call"`, `"agent_message_chunk"`,
			`"tool_call_update"`, `"never_seen"`,
		}, kinds)
		require.Less(t, len(said[crewbody.Updates](r)), 100, "updates are batched")
		require.Equal(t, "turn_ended", r.kinds()[len(r.kinds())-1], "the end of the turn follows its updates")
	})
}

func TestHalvesOfSurrogatePairsAreReplaced(t *testing.T) {
	for in, want := range map[string]string{
		`"\ud83d"`: `"\ufffd"`, `"\ud83d\ude00"`: `"\ud83d\ude00"`, `"\ude00\ud83d"`: `"\ufffd\ufffd"`, `"\\ud83d"`: `"\\ud83d"`,
		`"\ud83d\n\ud83d`: `"\ufffd\n\ufffd`, `"\ud83`: `"\ud83`, `\`: `\`, `"\u0041\ud83dx"`: `"\u0041\ufffdx"`,
	} {
		require.Equal(t, want, string(paired([]byte(in))), in)
	}
	r := newRig(t, goAgent(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{{
		Line: `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk",` +
			`"content":{"type":"text","text":"a\ud83d"}}}}`,
	}}}}}))
	run, session := r.started()
	r.prompt(run, session, "p")
	await[crewbody.TurnEnded](r, 1)
	require.Equal(t, "a\uFFFD", r.text())
	require.Empty(t, said[crewbody.Problem](r))
}

func rawOf(s string) []byte { return []byte(s) }

func TestPermissionIsAnsweredAsDecided(t *testing.T) {
	bothAgents(t, func(t *testing.T, command func(*testing.T, crewtest.Script) []string) {
		r := newRig(t, command(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{{Ask: &crewtest.Ask{
			Allowed: []crewtest.Step{{Text: "allowed "}}, Rejected: []crewtest.Step{{Text: "rejected "}},
			Cancelled: []crewtest.Step{{Text: "cancelled "}},
		}}}}}}))
		run, session := r.started()
		for i, option := range []string{"allow_once", "reject_once", ""} {
			r.prompt(run, session, fmt.Sprint("p", i))
			q := await[crewbody.Permission](r, i+1)[i]
			require.Equal(t, session, q.SessionID)
			require.Contains(t, string(q.ToolCall), "Run tests")
			require.Contains(t, string(q.Options), "allow_once")
			answer := crewbody.Answer{AgentID: agentID, Run: run, RequestID: q.RequestID, OptionID: option}
			r.act(answer)
			r.act(answer) // a second answer has no effect
			await[crewbody.TurnEnded](r, i+1)
		}
		require.Equal(t, "allowed rejected cancelled ", r.text())
	})
}

func TestCancellationAnswersOpenRequestsAndEndsTheTurn(t *testing.T) {
	bothAgents(t, func(t *testing.T, command func(*testing.T, crewtest.Script) []string) {
		r := newRig(t, command(t, crewtest.Script{Rules: []crewtest.Rule{
			{Match: "ask", Steps: []crewtest.Step{{Ask: &crewtest.Ask{Cancelled: []crewtest.Step{{Text: "not asked any more"}}}}}},
			{Steps: []crewtest.Step{{Text: "; begun"}, {Hang: true}}},
		}}))
		run, session := r.started()
		r.prompt(run, session, "ask")
		q := await[crewbody.Permission](r, 1)[0]
		r.act(crewbody.Cancel{AgentID: agentID, Run: run, SessionID: session})
		require.Equal(t, "cancelled", await[crewbody.TurnEnded](r, 1)[0].StopReason)
		require.Equal(t, "not asked any more", r.text())
		r.act(crewbody.Answer{AgentID: agentID, Run: run, RequestID: q.RequestID, OptionID: "allow_once"})
		r.prompt(run, session, "hang")
		// An agent that handles messages side by side may lose a cancellation that it gets at the same time as the prompt.
		require.Eventually(t, func() bool { return r.text() == "not asked any more; begun" }, waitLimit, 5*time.Millisecond)
		r.act(crewbody.Cancel{AgentID: agentID, Run: run, PromptID: "hang", SessionID: session})
		require.Equal(t, "cancelled", await[crewbody.TurnEnded](r, 2)[1].StopReason)
	})
}

// A turn can end while its cancellation is on the way. The next turn goes on.
func TestCancellationOfAnEndedTurnCancelsNothing(t *testing.T) {
	bothAgents(t, func(t *testing.T, command func(*testing.T, crewtest.Script) []string) {
		r := newRig(t, command(t, crewtest.Script{Rules: []crewtest.Rule{
			{Match: "ask", Steps: []crewtest.Step{{Ask: &crewtest.Ask{
				Allowed: []crewtest.Step{{Text: "allowed"}}, Cancelled: []crewtest.Step{{Text: "not asked any more"}},
			}}}},
			{Steps: []crewtest.Step{{Text: "first; "}}},
		}}))
		run, session := r.started()
		r.prompt(run, session, "one")
		await[crewbody.TurnEnded](r, 1)
		r.prompt(run, session, "ask")
		q := await[crewbody.Permission](r, 1)[0]
		r.act(crewbody.Cancel{AgentID: agentID, Run: run, PromptID: "one", SessionID: session})
		r.act(crewbody.Answer{AgentID: agentID, Run: run, RequestID: q.RequestID, OptionID: "allow_once"})
		require.Equal(t, "end_turn", await[crewbody.TurnEnded](r, 2)[1].StopReason)
		require.Equal(t, "first; allowed", r.text())
	})
}

func TestSessionIsContinuedAndItsPastIsMarked(t *testing.T) {
	bothAgents(t, func(t *testing.T, command func(*testing.T, crewtest.Script) []string) {
		argv := command(t, crewtest.Script{Load: true, Store: t.TempDir(), Rules: []crewtest.Rule{{Steps: []crewtest.Step{{Text: "{{prompt}} "}}}}})
		r := newRig(t, argv)
		run, session := r.started()
		r.prompt(run, session, "one")
		await[crewbody.TurnEnded](r, 1)
		r.act(crewbody.Stop{AgentID: agentID, Run: run})
		require.Equal(t, crewbody.Exited{Run: run}, await[crewbody.Exited](r, 1)[0])

		again := r.act(crewbody.Start{AgentID: agentID, Cwd: r.dir, SessionID: session})
		ready := await[crewbody.SessionReady](r, 2)[1]
		require.Equal(t, crewbody.SessionReady{Run: again, SessionID: session, Resumed: true}, ready)
		require.Equal(t, "one ", r.chunks("agent_message_chunk", true))
		r.prompt(again, session, "two")
		await[crewbody.TurnEnded](r, 2)
		require.Equal(t, "one two ", r.text())

		r.act(crewbody.Start{AgentID: agentID, Cwd: r.dir, SessionID: "session-gone"})
		failed := await[crewbody.StartFailed](r, 1)[0]
		require.Equal(t, crewbody.StageResume, failed.Stage)
		await[crewbody.Exited](r, 3)
	})
}

func TestSessionOfAnAgentThatCannotLoadIsNotReplacedByANewOne(t *testing.T) {
	r := newRig(t, goAgent(t, crewtest.Script{}))
	r.act(crewbody.Start{AgentID: agentID, Cwd: r.dir, SessionID: "session-1"})
	await[crewbody.Exited](r, 1)
	require.Equal(t, crewbody.StageResume, said[crewbody.StartFailed](r)[0].Stage)
	require.Empty(t, said[crewbody.SessionReady](r))
}

func TestDeathBySignalIsOneExitWithCode1(t *testing.T) {
	bothAgents(t, func(t *testing.T, command func(*testing.T, crewtest.Script) []string) {
		r := newRig(t, command(t, crewtest.Script{Rules: []crewtest.Rule{
			{Match: "die", Steps: []crewtest.Step{{Text: "last words"}, {Sleep: 1}, {Signal: int(syscall.SIGKILL)}}},
			{Match: "exit", Steps: []crewtest.Step{{Exit: intOf(7)}}},
		}}))
		run, session := r.started()
		r.prompt(run, session, "die")
		exit := await[crewbody.Exited](r, 1)[0]
		require.Equal(t, crewbody.Exited{Run: run, Code: 1, Signal: "killed"}, exit)
		require.Equal(t, "exited", r.kinds()[len(r.kinds())-1])
		r.prompt(run, session, "after its death")
		r.act(crewbody.Answer{AgentID: agentID, Run: run, RequestID: "ask-1", OptionID: "allow_once"})
		r.act(crewbody.Stop{AgentID: agentID, Run: run})

		run = r.act(crewbody.Start{AgentID: agentID, Cwd: r.dir})
		session = await[crewbody.SessionReady](r, 2)[1].SessionID
		r.prompt(run, session, "exit")
		require.Equal(t, crewbody.Exited{Run: run, Code: 7}, await[crewbody.Exited](r, 2)[1])
		require.Len(t, said[crewbody.Exited](r), 2)
	})
}

func TestAgentThatNeedsALoginSaysSo(t *testing.T) {
	bothAgents(t, func(t *testing.T, command func(*testing.T, crewtest.Script) []string) {
		r := newRig(t, command(t, crewtest.Script{SignIn: true}))
		r.act(crewbody.Start{AgentID: agentID, Cwd: r.dir})
		failed := await[crewbody.StartFailed](r, 1)[0]
		require.Equal(t, crewbody.StageSession, failed.Stage)
		require.Contains(t, failed.Error, "sign in")
		await[crewbody.Exited](r, 1)
	})
}

func TestFilesAndTerminalsFollowThePolicy(t *testing.T) {
	bothAgents(t, func(t *testing.T, command func(*testing.T, crewtest.Script) []string) {
		r := newRig(t, command(t, crewtest.Script{Rules: []crewtest.Rule{
			{Match: "read", Steps: []crewtest.Step{{Read: &crewtest.File{Path: "notes.txt", Line: 2, Limit: 1}}}},
			{Match: "escape", Steps: []crewtest.Step{{Read: &crewtest.File{Path: "link/secret"}}, {Read: &crewtest.File{Path: "/etc/hostname"}}}},
			{Match: "write", Steps: []crewtest.Step{{Write: &crewtest.File{Path: "new/file.txt", Content: "contents"}}}},
			{Match: "terminal", Steps: []crewtest.Step{{Terminal: []string{"sh", "-c", "echo out; exit 3"}}}},
		}}))
		outside := t.TempDir()
		require.NoError(t, os.WriteFile(outside+"/secret", []byte("secret"), 0o600))
		require.NoError(t, os.Symlink(outside, r.path("link")))
		require.NoError(t, os.WriteFile(r.path("notes.txt"), []byte("one\ntwo\nthree\n"), 0o600))
		run, session := r.started()
		turn := 0
		ask := func(text string) string {
			turn++
			before := r.text()
			r.prompt(run, session, text)
			await[crewbody.TurnEnded](r, turn)
			return strings.TrimPrefix(r.text(), before)
		}
		require.Equal(t, "read: two\n", ask("read"))
		got := ask("escape")
		require.Equal(t, 2, strings.Count(got, "failed"), got)
		require.NotContains(t, got, "secret")

		decided := func(n int, text string, allowed bool) (crewbody.Permission, string) {
			turn++
			before := r.text()
			r.prompt(run, session, text)
			q := await[crewbody.Permission](r, n)[n-1]
			r.act(crewbody.Answer{AgentID: agentID, Run: run, RequestID: q.RequestID, Allowed: allowed})
			await[crewbody.TurnEnded](r, turn)
			return q, strings.TrimPrefix(r.text(), before)
		}
		q, got := decided(1, "write", false)
		require.Equal(t, "fs/write_text_file", q.Method)
		require.JSONEq(t, string(encoded(writeRequest{Path: r.path("new/file.txt"), Content: "contents"}.shown())), string(q.Args))
		require.Contains(t, got, "not permitted")
		require.NoDirExists(t, r.path("new"))
		_, got = decided(2, "write", true)
		require.Equal(t, "written", got)
		raw, err := os.ReadFile(r.path("new/file.txt"))
		require.NoError(t, err)
		require.Equal(t, "contents", string(raw))
		q, got = decided(3, "terminal", true)
		require.Equal(t, "terminal/create", q.Method)
		require.Contains(t, string(q.Args), "exit 3")
		require.Contains(t, string(q.Args), `"env_sha256"`)
		require.Equal(t, "exit 3: out\n", got)
	})
}

func TestUnknownMethodsAreRefusedAndWithdrawnRequestsAnswered(t *testing.T) {
	r := newRig(t, goAgent(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{
		{Call: "fs/format_disk", CallParams: rawOf(`{}`)},
		{Call: "session/request_permission", CallParams: rawOf(`{"sessionId":"s","toolCall":{},"options":[]}`)},
		{Line: `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"call-2"}}`},
		{Text: "done"},
	}}}}))
	run, session := r.started()
	r.prompt(run, session, "p")
	await[crewbody.TurnEnded](r, 1)
	require.Len(t, said[crewbody.Permission](r), 1)
	require.Equal(t, "done", r.text())
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	require.Empty(t, r.h.runs[agentID].asks.take(func(ask) bool { return true }))
}

// The arguments name a grant, so whatever changes what the host does changes them.
func TestArgumentsOfRequestsDifferWithContentDirectoryAndEnvironment(t *testing.T) {
	write := func(content string) string {
		return string(encoded(writeRequest{Path: "/r/a", Content: content}.shown()))
	}
	require.Equal(t, write("good"), write("good"))
	require.NotEqual(t, write("good"), write("evil"), "the same length")

	create := func(params string) string {
		var q createRequest
		require.NoError(t, json.Unmarshal([]byte(params), &q))
		return string(encoded(q.shown("/repo")))
	}
	const plain = `{"command":"npm","args":["test"]}`
	require.Equal(t, create(plain), create(`{"command":"npm","args":["test"],"cwd":"/repo","env":[],"outputByteLimit":9}`))
	secret := create(`{"command":"npm","args":["test"],"env":[{"name":"TOKEN","value":"hunter2"}]}`)
	all := []string{
		create(plain), secret, create(`{"command":"npm","args":["test"],"cwd":"/repo/sub"}`),
		create(`{"command":"npm","args":["test"],"env":[{"name":"TOKEN","value":"hunter3"}]}`),
		create(`{"command":"npm","args":["test"],"env":[{"name":"NODE_OPTIONS","value":"hunter2"}]}`),
	}
	for i, one := range all {
		for _, other := range all[:i] {
			require.NotEqual(t, other, one)
		}
	}
	require.Contains(t, secret, "TOKEN")
	require.NotContains(t, secret, "hunter2")
	for variable, shown := range map[string]bool{
		`{"name":"LD_PRELOAD","value":"/tmp/x.so"}`: true, `{"name":"NODE_OPTIONS","value":"--require=x"}`: true,
		`{"name":"AWS_SECRET_ACCESS_KEY","value":"ab/c+d=="}`: false, `{"name":"PGPASSWORD","value":"p@ss"}`: false,
		`{"name":"BASH_FUNC_key","value":"() { evil; }"}`: true, `{"name":"MY_TOKEN","value":"/bin/evil"}`: true, `{"name":"TOKEN","value":""}`: true,
	} {
		args := create(`{"command":"npm","args":["test"],"env":[` + variable + `]}`)
		require.Equal(t, shown, strings.Contains(args, variable), "a value can be what runs: %s", variable)
		require.Equal(t, !shown, strings.Contains(args, `"value":"[REDACTED]"`), variable)
	}
	require.Contains(t, write("evil"), "evil")
}
