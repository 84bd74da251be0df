package invoke

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// short is a reply in one line: token/call/tool/args and what it says.
func (r reply) short() string {
	said := "value " + string(r.value)
	switch {
	case r.decides && r.approved:
		said = "approve"
	case r.decides:
		said = "deny"
	}
	if r.reason != "" {
		said += " " + r.reason
	}
	return strings.Join([]string{r.token, r.call, r.tool, string(r.args), said}, "/")
}

func shorts(t *testing.T, messages string) []string {
	t.Helper()
	list, err := repliesOf(elementsOf(topics.Raw(messages)))
	require.NoError(t, err, messages)
	var out []string
	for _, r := range list {
		out = append(out, r.short())
	}
	return out
}

func TestRepliesAreReadFromTheLastMessages(t *testing.T) {
	call := `{"role":"assistant","content":[{"type":"text","text":"Paying."},{"type":"tool_call","toolCallId":"t1","toolName":"pay","input":{"eur":1}}]}`
	for name, tt := range map[string]struct {
		messages string
		want     []string
	}{
		"token": {
			`[{"role":"tool","content":[{"type":"tool_result","output":{"approved":true,"interactionToken":"r1"}}]}]`,
			[]string{"r1////approve"},
		},
		"call and its arguments": {
			`[` + call + `,{"role":"user","content":[{"type":"tool_result","toolCallId":"t1","output":{"approved":false,"reason":"too much"}}]}]`,
			[]string{`/t1/pay/{"eur":1}/deny too much`},
		},
		"form of a batch": {
			`[{"role":"tool","content":"","tool_call_id":"t1","tool_name":"pay","input":{"eur":1}},` +
				`{"role":"tool","tool_call_id":"t1","content":{"approved":true}}]`,
			[]string{`/t1/pay/{"eur":1}/approve`},
		},
		"several messages": {
			`[{"role":"tool","content":[{"type":"tool_result","toolCallId":"old","output":{"approved":true}}]},{"role":"user","content":"x"},` +
				`{"role":"tool","content":[{"type":"tool_result","toolCallId":"a","output":{"approved":true}}]},` +
				`{"role":"tool","content":[{"type":"tool_result","toolCallId":2,"output":{"approved":false}}]}]`,
			[]string{"/a///approve", "/2///deny"},
		},
		"answer in the assistant's message": {
			`[{"role":"user","content":"pay"},{"role":"assistant","content":[{"type":"text","text":"Paying."},` +
				`{"type":"tool_call","toolCallId":"t1","toolName":"pay","input":{}},` +
				`{"type":"tool_result","toolCallId":"t1","toolName":"pay","output":{"approved":true,"interactionToken":"r1"}}]}]`,
			[]string{`r1/t1/pay/{}/approve`},
		},
		"value": {
			`[{"role":"tool","content":[{"type":"tool_result","toolCallId":"t1","output":{"approved":true,"score":7}}]}]`,
			[]string{`/t1///value {"approved":true,"score":7}`},
		},
		"text is a value":             {`[{"role":"tool","content":[{"type":"tool_result","toolCallId":"t1","output":"yes"}]}]`, []string{`/t1///value "yes"`}},
		"question":                    {`[{"role":"user","content":"approved"}]`, nil},
		"answer before a question":    {`[{"role":"tool","content":[{"type":"tool_result","toolCallId":"t1","output":{"approved":true}}]},{"role":"user","content":"x"}]`, nil},
		"call without an answer":      {`[` + call + `]`, nil},
		"result without output":       {`[{"role":"tool","content":[{"type":"tool_result","toolCallId":"t1"}]}]`, nil},
		"call in the form of a batch": {`[{"role":"tool","content":"","tool_call_id":"t1","tool_name":"pay","input":{}}]`, nil},
		"no messages":                 {`[]`, nil},
		"not a message":               {`[7]`, nil},
	} {
		require.Equal(t, tt.want, shorts(t, tt.messages), name)
	}
}

func TestInvalidAnswersAreRefused(t *testing.T) {
	for name, messages := range map[string]string{
		"approved is not a boolean": `[{"role":"tool","content":[{"type":"tool_result","output":{"approved":"yes","interactionToken":"r1"}}]}]`,
		"approved is null":          `[{"role":"tool","content":[{"type":"tool_result","output":{"approved":null}}]}]`,
		"text beside an answer": `[{"role":"user","content":[{"type":"tool_result","output":{"approved":true,"interactionToken":"r1"}},` +
			`{"type":"text","text":"and a new question"}]}]`,
		"long reason": `[{"role":"tool","content":[{"type":"tool_result","output":{"approved":false,"reason":"` +
			strings.Repeat("x", maxReason+1) + `"}}]}]`,
		"too many": `[{"role":"tool","content":[` + strings.TrimSuffix(strings.Repeat(
			`{"type":"tool_result","output":{"approved":true}},`, maxReplies+1), ",") + `]}]`,
	} {
		_, err := repliesOf(elementsOf(topics.Raw(messages)))
		var refused *Error
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, 422, refused.Status, name)
	}
}

// Vercel's approval parts become the same answers.
func TestVercelApprovalsAreReplies(t *testing.T) {
	for parts, want := range map[string]string{
		`{"type":"tool-pay","toolCallId":"t1","state":"approval-responded","input":{"eur":1},"approval":{"id":"r1","approved":true}}`: `r1/t1/pay/{"eur":1}/approve`,
		`{"type":"tool-pay","toolCallId":"t1","state":"output-denied","input":{},"approval":{"id":"r1","approved":false}}`:            `r1/t1/pay/{}/deny`,
		`{"type":"tool-approval-response","approvalId":"r1","approved":true}`:                                                         `r1/r1///approve`,
	} {
		r := canonical(Request{Data: topics.Raw(`{"inputs":{"messages":[{"role":"assistant","parts":[` + parts + `]}]}}`)})
		list, err := repliesOf(r.Messages())
		require.NoError(t, err)
		require.Len(t, list, 1, parts)
		require.Equal(t, want, list[0].short())
	}
}

func interactionOf(index int, id, call, tool, args string) gated {
	return gated{
		Interaction: folder.Interaction{
			Index: index, ID: id, Kind: "user_approval", ToolUseID: call, Tool: tool, Names: []string{tool}, Args: topics.Raw(args),
		},
		open: true,
	}
}

func TestAnswersMatchByTokenThenCallThenArguments(t *testing.T) {
	pay := interactionOf(0, "r1", "t1", "pay", `{"eur":1,"to":"x"}`)
	mail := interactionOf(1, "r2", "t2", "mail", `{}`)
	again := interactionOf(2, "r3", "t3", "pay", `{"to":"x", "eur":1.0}`)
	sameCall := interactionOf(3, "r4", "t1", "pay", `{}`)
	done := interactionOf(4, "r5", "t5", "pay", `{"eur":5}`)
	done.open = false
	donePay := pay
	donePay.open = false
	doneSameCall := interactionOf(5, "r6", "t1", "pay", `{}`)
	doneSameCall.open = false
	doneBefore := interactionOf(6, "r1", "t1", "pay", `{"eur":5}`)
	doneBefore.open = false
	sameToken := interactionOf(7, "r1", "t2", "pay", `{"eur":9}`)
	sameTokenAndCall := interactionOf(8, "r1", "t1", "pay", `{"eur":9}`)
	otherToken := interactionOf(9, "r8", "t1", "pay", `{"eur":9}`)
	question := interactionOf(6, "r7", "t7", "ask", `{}`)
	question.Kind = "user_input"
	doneQuestion := question
	doneQuestion.open = false

	approve := func(token, call, tool, args string) reply {
		return reply{token: token, call: call, tool: tool, args: topics.Raw(args), decides: true, approved: true}
	}
	for name, tt := range map[string]struct {
		reply   reply
		all     []gated
		open    []int
		decided []int
		err     error
	}{
		"token":                                     {approve("r2", "", "", ""), []gated{pay, mail}, []int{1}, nil, nil},
		"token before call":                         {approve("r2", "t1", "", ""), []gated{pay, mail}, []int{1}, nil, nil},
		"call":                                      {approve("", "t2", "", ""), []gated{pay, mail}, []int{1}, nil, nil},
		"call with an unknown token":                {approve("?", "t2", "", ""), []gated{pay, mail}, []int{1}, nil, nil},
		"call with other arguments":                 {approve("", "t1", "pay", `{"eur":1000}`), []gated{pay, mail}, []int{0}, nil, nil},
		"tool and arguments":                        {approve("", "t9", "pay", `{"to":"x","eur":1}`), []gated{pay, mail}, []int{0}, nil, nil},
		"tool and arguments in an envelope":         {approve("", "", "pay", `{"tool":"pay","arguments":{"to":"x","eur":1}}`), []gated{pay}, []int{0}, nil, nil},
		"two with these arguments":                  {approve("", "t9", "pay", `{"to":"x","eur":1}`), []gated{pay, again}, nil, nil, errAmbiguous},
		"two with this call":                        {approve("", "t1", "", ""), []gated{pay, sameCall}, nil, nil, errAmbiguous},
		"two with this token":                       {approve("r1", "", "", ""), []gated{pay, pay}, nil, nil, errAmbiguous},
		"two with this token, one by its call":      {approve("r1", "t1", "", ""), []gated{pay, interactionOf(1, "r1", "t2", "", "")}, []int{0}, nil, nil},
		"other arguments":                           {approve("", "t9", "pay", `{"eur":2}`), []gated{pay}, nil, nil, errNoInteraction},
		"no arguments":                              {approve("", "t9", "pay", ``), []gated{pay}, nil, nil, errNoInteraction},
		"unknown":                                   {approve("r9", "", "", ""), []gated{pay}, nil, nil, errNoInteraction},
		"nothing to match":                          {approve("", "", "", ""), []gated{interactionOf(0, "", "", "", "")}, nil, nil, errNoInteraction},
		"decided":                                   {approve("r5", "", "", ""), []gated{pay, done}, nil, []int{1}, nil},
		"token of a decided one never decides":      {approve("r6", "t1", "pay", `{}`), []gated{doneSameCall, pay}, nil, []int{0}, nil},
		"call of a decided one that is asked again": {approve("", "t1", "", ""), []gated{doneSameCall, pay}, []int{1}, nil, nil},
		"arguments of a decided one":                {approve("", "t9", "pay", `{"eur":5}`), []gated{done}, nil, []int{0}, nil},
		"repeat, its token names a later call too":  {approve("r1", "t1", "pay", `{"eur":5}`), []gated{doneBefore, sameToken}, nil, []int{0}, nil},
		"repeat, a later call has the same IDs":     {approve("r1", "t1", "pay", `{"eur":5}`), []gated{doneBefore, sameTokenAndCall}, nil, []int{0}, nil},
		"repeat, a later call has the same ID":      {approve("", "t1", "pay", `{"eur":5}`), []gated{doneBefore, otherToken}, nil, []int{0}, nil},
		"later call, whose token was used before":   {approve("r1", "t2", "pay", `{"eur":1000}`), []gated{doneBefore, sameToken}, []int{1}, nil, nil},
		"later call, whose IDs were used before":    {approve("r1", "t1", "pay", `{"eur":9}`), []gated{doneBefore, sameTokenAndCall}, []int{1}, nil, nil},
		"forgotten token, and other arguments":      {approve("r1", "t1", "pay", `{"eur":5}`), []gated{otherToken}, nil, nil, errNoInteraction},
		"arguments of a decided one, asked again":   {approve("", "t9", "pay", `{"eur":1,"to":"x"}`), []gated{donePay, again}, []int{1}, nil, nil},
		"a value does not approve":                  {reply{call: "t1", value: topics.Raw(`"yes"`)}, []gated{pay}, nil, nil, errNoDecision},
		"a value with the token does not approve":   {reply{token: "r1", value: topics.Raw(`{}`)}, []gated{pay}, nil, nil, errNoDecision},
		"a value for the arguments":                 {reply{call: "t9", tool: "pay", args: topics.Raw(`{"eur":1,"to":"x"}`), value: topics.Raw(`true`)}, []gated{pay}, nil, nil, errNoDecision},
		"a result of another call":                  {reply{call: "t9", tool: "pay", args: topics.Raw(`{"eur":2}`), value: topics.Raw(`true`)}, []gated{pay}, nil, nil, nil},
		"a result of a decided call":                {reply{call: "t5", tool: "pay", args: topics.Raw(`{"eur":5}`), value: topics.Raw(`true`)}, []gated{pay, done}, nil, nil, nil},
		"a value answers a question":                {reply{call: "t7", value: topics.Raw(`"yes"`)}, []gated{pay, question}, []int{1}, nil, nil},
		"a late answer to a question":               {reply{call: "t7", value: topics.Raw(`"yes"`)}, []gated{pay, doneQuestion}, nil, []int{1}, nil},
		"a denial denies a question":                {reply{token: "r7", decides: true}, []gated{question}, []int{0}, nil, nil},
	} {
		m, err := matchReplies([]reply{tt.reply}, tt.all)
		if tt.err != nil {
			require.Equal(t, tt.err, err, name)
			continue
		}
		require.NoError(t, err, name)
		at := func(list []match) (all []int) {
			for _, m := range list {
				all = append(all, m.at)
			}
			return all
		}
		require.Equal(t, tt.open, at(m.open), name)
		require.Equal(t, tt.decided, at(m.decided), name)
	}
}

func TestContradictingAnswersAreRefused(t *testing.T) {
	pay := interactionOf(0, "r1", "t1", "pay", `{}`)
	yes, no := reply{token: "r1", decides: true, approved: true}, reply{call: "t1", decides: true}
	_, err := matchReplies([]reply{yes, no}, []gated{pay})
	require.Equal(t, error(errContradiction), err)
	m, err := matchReplies([]reply{yes, yes}, []gated{pay})
	require.NoError(t, err)
	require.Len(t, m.open, 1)
}

func TestVerdictsOfAnswers(t *testing.T) {
	call, question := interactionOf(0, "r1", "t1", "pay", `{}`), interactionOf(0, "r1", "t1", "ask", `{}`)
	question.Kind = "client_tool"
	yes, no := match{reply: reply{decides: true, approved: true}}, match{reply: reply{decides: true}}
	require.Equal(t, topics.VerdictApprove, yes.verdict(call))
	require.Equal(t, topics.VerdictDeny, no.verdict(call))
	require.Equal(t, topics.VerdictAnswer, yes.verdict(question))
	require.Equal(t, topics.VerdictDeny, no.verdict(question))
	for value, want := range map[string]string{
		`"N4"`: `"N4"`, `{"berth":"N4"}`: `{"berth":"N4"}`, `{"interactionToken":"r1","berth":"N4"}`: `{"berth":"N4"}`,
		`{"answer":null,"interactionToken":"r1"}`: `null`, `{"answer":"N4","interactionToken":"r1"}`: `"N4"`,
	} {
		require.Equal(t, want, string(match{reply: reply{value: topics.Raw(value)}}.answer()))
	}
}

// No request approves anything without an output {approved: true}.
func FuzzReplies(f *testing.F) {
	f.Add(`[{"role":"tool","content":[{"type":"tool_result","toolCallId":"t1","output":{"approved":true,"interactionToken":"r1"}}]}]`)
	f.Add(`[{"role":"tool","tool_call_id":"t1","content":{"approved":false}}]`)
	f.Add(`[{"role":"assistant","parts":[{"type":"tool-pay","toolCallId":"t1","approval":{"id":"r1","approved":true}}]}]`)
	f.Add(`[{"role":"assistant","content":[{"type":"tool_call","toolCallId":"t1","input":{}},{"type":"tool_result","output":{"approved":1}}]}]`)
	all := []gated{interactionOf(0, "r1", "t1", "pay", `{"eur":1}`), interactionOf(1, "", "", "", ``)}
	f.Fuzz(func(t *testing.T, messages string) {
		body, err := bodyOf([]byte(`{"data":{"inputs":{"messages":`+messages+`}}}`), false)
		if err != nil {
			return
		}
		for _, r := range []Request{{Data: member(body, "data")}, canonical(Request{Data: member(body, "data")})} {
			replies, err := repliesOf(r.Messages())
			if err != nil {
				require.Empty(t, replies)
				continue
			}
			require.LessOrEqual(t, len(replies), maxReplies)
			m, err := matchReplies(replies, all)
			if err != nil {
				continue
			}
			for _, one := range m.open {
				to := all[one.at]
				require.NotEqual(t, topics.VerdictAnswer, one.verdict(to))
				if one.verdict(to) == topics.VerdictApprove {
					require.Contains(t, messages, "true")
					require.Zero(t, one.at)
				}
			}
		}
	})
}
