package turn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

func TestArgumentsAreReplacedInTheNewestBlockOfTheCall(t *testing.T) {
	const block = `{"type":"tool_use","id":"t1","name":"pay","input":%s}`
	says := func(blocks ...string) string {
		return `{"role":"assistant", "content" : [` + strings.Join(blocks, " , ") + `],"metadata":{"content":[]}}`
	}
	with := func(input string) string { return fmt.Sprintf(block, input) }
	for name, c := range map[string]struct{ before, after string }{
		"one block":            {`[` + says(with(`{"a":1}`)) + `]`, `[` + says(with(`{"b":2}`)) + `]`},
		"other bytes stay":     {`[ null, {"role":"user","content":"t1 \"tool_use\" ]"} ,` + says(`{"type":"text","text":"}]"}`, with(`{"a":1}`), `null`) + "\n]", `[ null, {"role":"user","content":"t1 \"tool_use\" ]"} ,` + says(`{"type":"text","text":"}]"}`, with(`{"b":2}`), `null`) + "\n]"},
		"the newest message":   {`[` + says(with(`{"a":1}`)) + `,` + says(with(`{"a":1}`)) + `]`, `[` + says(with(`{"a":1}`)) + `,` + says(with(`{"b":2}`)) + `]`},
		"the same arguments":   {`[` + says(with(`{}`), with(`{ "a" : 1.0 }`)) + `]`, `[` + says(with(`{}`), with(`{"b":2}`)) + `]`},
		"else the first":       {`[` + says(with(`{}`), with(`{"c":1}`)) + `]`, `[` + says(with(`{"b":2}`), with(`{"c":1}`)) + `]`},
		"no arguments":         {`[` + says(`{"type":"tool_use","id":"t1"}`) + `]`, `[` + says(`{"type":"tool_use","id":"t1","input":{"b":2}}`) + `]`},
		"null arguments":       {`[` + says(with(`null`)) + `]`, `[` + says(with(`{"b":2}`)) + `]`},
		"escaped names":        {`[{"role":"assistant","cont\u0065nt":[{"type":"tool_use","id":"t\u0031","inp\u0075t":[1]}]}]`, `[{"role":"assistant","cont\u0065nt":[{"type":"tool_use","id":"t\u0031","inp\u0075t":{"b":2}}]}]`},
		"another call":         {`[` + says(`{"type":"tool_use","id":"t2","input":{}}`) + `]`, ``},
		"a result of the call": {`[{"role":"user","content":[{"type":"tool_result","id":"t1","tool_use_id":"t1"}]}]`, ``},
		"only text":            {`[{"role":"assistant","content":"t1"},{"role":"assistant"},{"role":"assistant","content":null},7]`, ``},
		"nothing":              {`[]`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			changed, ok := withArguments(topics.Raw(c.before), "t1", topics.Raw(`{"a":1}`), topics.Raw(`{"b":2}`))
			require.Equal(t, c.after != "", ok)
			require.Equal(t, c.after, string(changed))
		})
	}
}

// Whatever else is in a conversation: only the arguments change, and changing them back gives the same bytes.
func TestReplacedArgumentsLeaveEverythingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", `]}"`, `\`, "null", `{"type":"tool_use","id":"t1"}`, "é🙂", "a,b"})
		value := rapid.Custom(func(t *rapid.T) string {
			raw, _ := json.Marshal(map[string]any{text.Draw(t, "name"): []any{text.Draw(t, "text"), rapid.Int().Draw(t, "n"), nil}})
			var spaced bytes.Buffer
			_ = json.Indent(&spaced, raw, "", rapid.SampledFrom([]string{"", "  "}).Draw(t, "indent"))
			return spaced.String()
		})
		from, to := value.Draw(t, "from"), value.Draw(t, "to")
		block := rapid.Custom(func(t *rapid.T) string {
			quoted, _ := json.Marshal(text.Draw(t, "said"))
			return rapid.SampledFrom([]string{
				"null", `{"type":"text","text":` + string(quoted) + `}`, `{"type":"tool_use","id":"t0","input":` + from + `}`,
				`{"type":"tool_result","tool_use_id":"t1","content":` + string(quoted) + `}`,
			}).Draw(t, "block")
		})
		blocks := rapid.SliceOfN(block, 0, 4)
		before, after := blocks.Draw(t, "before"), blocks.Draw(t, "after")
		conversation := func(input string) string {
			all := append(append(append([]string{}, before...), `{"type":"tool_use","id":"t1","name":"pay","input":`+input+`}`), after...)
			return `[{"role":"user","content":"hi"},{"role":"assistant","content":[` + strings.Join(all, ",") + `]},{"role":"assistant","content":"t1"}]`
		}
		changed, ok := withArguments(topics.Raw(conversation(from)), "t1", topics.Raw(from), topics.Raw(to))
		require.True(t, ok)
		require.Equal(t, conversation(to), string(changed))
		back, ok := withArguments(changed, "t1", topics.Raw(to), topics.Raw(from))
		require.True(t, ok)
		require.Equal(t, conversation(from), string(back))
	})
}

func TestResultOfAnEditedCallIsMarked(t *testing.T) {
	for result, want := range map[string]string{
		"":                               `{` + editedMember + `}`,
		`{}`:                             `{` + editedMember + `}`,
		"{ \n}":                          `{` + editedMember + `}`,
		` {"a":1} `:                      `{"a":1,` + editedMember + `}`,
		`{"turntable_approval":{"a":1}}`: `{"result":{"turntable_approval":{"a":1}},` + editedMember + `}`,
	} {
		marked := string(markEdited([]byte(result)))
		require.Equal(t, want, marked)
		require.True(t, json.Valid([]byte(marked)))
	}
}

func TestEveryResultOfAnEditedCallIsMarked(t *testing.T) {
	for name, end := range map[string]func(p *play) effects{
		"result":  func(p *play) effects { return p.resultFrom("pay", "t1", "paid") },
		"failure": func(p *play) effects { return p.send("tool-use-dlq", `{"tool_use_id":"t1","name":"pay"}`) },
		"timeout": func(p *play) effects { return p.wait(p.rules.ToolTimeout) },
		"too large": func(p *play) effects {
			return p.resultFrom("pay", "t1", strings.Repeat("x", p.rules.RecordLimit))
		},
		"cancel": func(p *play) effects { return p.send("session-control", `{"action":"cancel"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			p, g := waitForApproval(t)
			p.send("gate-outcomes", gateEnd(g, topics.GateApproved, editing(`{"amount":1}`)))
			require.Contains(t, string(the[completed](t, end(p)).Results[0].Result), editedMember)
		})
	}
}

// An edit of the arguments to the same bytes is none.
func TestUnchangedArgumentsAreNotMarked(t *testing.T) {
	p, g := waitForApproval(t)
	es := p.send("gate-outcomes", gateEnd(g, topics.GateApproved, editing(payment)))
	require.Len(t, emitted[called](es), 1)
	require.NotContains(t, string(the[completed](t, p.resultFrom("pay", "t1", "paid")).Results[0].Result), approvalMember)
}

// A worker that writes its calls in another form has no block to change. The call runs, and its result says so.
func TestEditWithoutABlockRuns(t *testing.T) {
	p := newPlay(t, withPolicy(paying()))
	es := p.respond(p.ask("pay"), strings.Replace(callingFor(wanted{"t1", "pay", payment}), `"type":"tool_use"`, `"type":"function"`, 1))
	g := the[gateRequested](t, es)
	es = p.send("gate-outcomes", gateEnd(g, topics.GateApproved, editing(`{"amount":1}`)))
	require.Equal(t, `{"amount":1}`, string(the[called](t, es).Input))
	asked := the[enriched](t, p.resultFrom("pay", "t1", "paid"))
	require.Contains(t, string(asked.History), "120.50")
	require.Contains(t, string(asked.LatestInput), approvalMember)
}

// The call can be in the part of the conversation that the row stores as shared with the history.
func TestEditOfACallThatIsInTheSharedHistory(t *testing.T) {
	p := newPlay(t, withPolicy(paying()))
	asked := p.ask("pay")
	call := callingFor(wanted{"t1", "pay", payment})
	es := p.respond(asked, strings.Replace(call, `"end_turn":false`, `"end_turn":true,"x":1`, 1))
	g := the[gateRequested](t, es)
	p.rewrite(func(s *turnrow.State) {
		s.History, s.HistoryLength = append([]byte(nil), s.Turn.Tail...), s.Turn.HistoryLength
		s.Turn.Shared, s.Turn.Tail = uint64(len(s.History)), nil
	})
	p.send("gate-outcomes", gateEnd(g, topics.GateApproved, editing(`{"amount":1}`)))
	require.Contains(t, string(p.state().History), "120.50", "what earlier turns said stays")
	asked = the[enriched](t, p.resultFrom("pay", "t1", "paid"))
	require.Contains(t, string(asked.History), `"input":{"amount":1}`)
	require.NotContains(t, string(asked.History), "120.50")
}

func FuzzWithArguments(f *testing.F) {
	f.Add([]byte(`[{"role":"assistant","content":[{"type":"tool_use","id":"t1","input":{}}]}]`), []byte(`{"a":1}`))
	f.Add([]byte(`[{"role":"assistant","content":[{"type":"tool_use","id":"t1"}]},null]`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, conversation, args []byte) {
		if !json.Valid(conversation) || !json.Valid(args) || len(conversation) == 0 || conversation[0] != '[' {
			return
		}
		changed, ok := withArguments(conversation, "t1", topics.Raw(`{}`), args)
		if ok {
			require.True(t, json.Valid(changed), "%s", changed)
		}
	})
}
