package gate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/topics"
)

func TestDecisionsThatAGateAccepts(t *testing.T) {
	const options = `[{"optionId":"once","name":"Yes","kind":"allow_once"},{"optionId":"always","name":"Always","kind":"allow_always"},` +
		`{"optionId":"no","name":"No","kind":"reject_once"},{"optionId":"later","name":"Later"}]`
	schema := topics.Raw(`{"type":"object","properties":{"cents":{"type":"integer","maximum":500}},"required":["cents"]}`)
	args := topics.Raw(`{"cents":250}`)
	gate := func(change func(*View)) View {
		v := View{
			Kind: topics.GateTool, Tool: "pay", Args: args, ArgsSHA256: topics.ArgsSHA256(args), Options: topics.Raw(options),
			Allowed: []topics.GateVerdict{topics.VerdictApprove, topics.VerdictDeny},
		}
		if change != nil {
			change(&v)
		}
		return v
	}
	editable := func(v *View) { v.Allowed = append(v.Allowed, topics.VerdictEdit) }
	withSchema := func(v *View) { editable(v); v.ResponseSchema = schema }
	question := func(v *View) { v.Allowed = []topics.GateVerdict{topics.VerdictAnswer}; v.ResponseSchema = schema }
	dangerous := func(v *View) { v.Dangerous = true }
	approve := topics.GateDecision{Verdict: topics.VerdictApprove}
	edit := func(args string) topics.GateDecision {
		return topics.GateDecision{Verdict: topics.VerdictApprove, EditedArgs: topics.Raw(args)}
	}
	answer := func(value string) topics.GateDecision {
		return topics.GateDecision{Verdict: topics.VerdictAnswer, Answer: topics.Raw(value)}
	}
	for name, c := range map[string]struct {
		gate     func(*View)
		decision topics.GateDecision
		refused  string // part of the error, empty if accepted
	}{
		"approve":                        {nil, approve, ""},
		"deny":                           {nil, topics.GateDecision{Verdict: topics.VerdictDeny}, ""},
		"same digest":                    {nil, topics.GateDecision{Verdict: topics.VerdictApprove, ArgsSHA256: topics.ArgsSHA256(args)}, ""},
		"other digest":                   {nil, topics.GateDecision{Verdict: topics.VerdictApprove, ArgsSHA256: "00"}, "other arguments"},
		"other digest of a denial":       {nil, topics.GateDecision{Verdict: topics.VerdictDeny, ArgsSHA256: "00"}, "other arguments"},
		"option":                         {nil, topics.GateDecision{Verdict: topics.VerdictApprove, OptionID: "once"}, ""},
		"option without a kind":          {nil, topics.GateDecision{Verdict: topics.VerdictApprove, OptionID: "later"}, ""},
		"unknown option":                 {nil, topics.GateDecision{Verdict: topics.VerdictApprove, OptionID: "two"}, "option is unknown"},
		"unknown option of a denial":     {nil, topics.GateDecision{Verdict: topics.VerdictDeny, OptionID: "two"}, "option is unknown"},
		"option against the verdict":     {nil, topics.GateDecision{Verdict: topics.VerdictApprove, OptionID: "no"}, "contradicts"},
		"allowing option with a denial":  {nil, topics.GateDecision{Verdict: topics.VerdictDeny, OptionID: "once"}, "contradicts"},
		"allow always":                   {nil, topics.GateDecision{Verdict: topics.VerdictApprove, OptionID: "always"}, ""},
		"allow always what is dangerous": {dangerous, topics.GateDecision{Verdict: topics.VerdictApprove, OptionID: "always"}, "once only"},
		"grant":                          {nil, topics.GateDecision{Verdict: topics.VerdictApprove, Scope: topics.ScopeAgent}, ""},
		"grant what is dangerous":        {dangerous, topics.GateDecision{Verdict: topics.VerdictApprove, Scope: topics.ScopeSession}, "once only"},
		"once what is dangerous":         {dangerous, topics.GateDecision{Verdict: topics.VerdictApprove, Scope: topics.ScopeOnce}, ""},
		"grant with a denial":            {nil, topics.GateDecision{Verdict: topics.VerdictDeny, Scope: topics.ScopeSession}, "later requests"},
		"grant with an edit": {editable, topics.GateDecision{
			Verdict: topics.VerdictApprove, EditedArgs: args, Scope: topics.ScopeSession,
		}, "later requests"},
		"edit":                      {editable, edit(`{"cents":1}`), ""},
		"edit where not allowed":    {nil, edit(`{"cents":1}`), "cannot be edited"},
		"edit with a denial":        {editable, topics.GateDecision{Verdict: topics.VerdictDeny, EditedArgs: args}, "cannot be edited"},
		"edit that is no object":    {editable, edit(`[1]`), "not an object"},
		"edit with a repeated name": {editable, edit(`{"cents":1,"cents":9}`), "not valid JSON"},
		"edit that is not JSON":     {editable, edit(`{`), "not valid JSON"},
		"edit within the schema":    {withSchema, edit(`{"cents":500}`), ""},
		"edit outside the schema":   {withSchema, edit(`{"cents":501}`), "match the response schema"},
		"edit that is too large":    {editable, edit(`{"x":"` + strings.Repeat("x", maxValue) + `"}`), "too large"},
		"answer":                    {question, answer(`{"cents":1}`), ""},
		"answer outside the schema": {question, answer(`{}`), "match the response schema"},
		"answer where not allowed":  {nil, answer(`{"cents":1}`), "not allowed"},
		"empty answer":              {question, topics.GateDecision{Verdict: topics.VerdictAnswer}, "answer is missing"},
		"approval of a question":    {question, approve, "not allowed"},
		"approval with an answer":   {nil, topics.GateDecision{Verdict: topics.VerdictApprove, Answer: args}, "has an answer"},
		"no verdict":                {nil, topics.GateDecision{}, "not allowed"},
		"close":                     {nil, topics.GateDecision{Verdict: topics.VerdictClose, Cause: topics.CauseDeadline}, "not allowed"},
		"close that is allowed": {
			func(v *View) { v.Allowed = append(v.Allowed, topics.VerdictClose) },
			topics.GateDecision{Verdict: topics.VerdictClose},
			"not allowed",
		},
		"long reason": {nil, topics.GateDecision{Verdict: topics.VerdictDeny, Reason: strings.Repeat("x", maxText+1)}, "too long"},
	} {
		err := gate(c.gate).Check(c.decision)
		switch {
		case c.refused == "":
			require.NoError(t, err, name)
		case c.refused == "other arguments":
			require.ErrorIs(t, err, ErrDigest, name)
		default:
			require.ErrorIs(t, err, ErrDecision, name)
			require.ErrorContains(t, err, c.refused, name)
		}
	}
}

func TestSchemasAreBoundedAndLoadNothing(t *testing.T) {
	for name, schema := range map[string]string{
		"remote":           `{"$ref":"http://127.0.0.1:1/schema.json"}`,
		"file":             `{"$ref":"file:///etc/passwd"}`,
		"unknown type":     `{"type":"nosuch"}`,
		"bad pattern":      `{"pattern":"("}`,
		"not a schema":     `[]`,
		"remote dialect":   `{"$schema":"http://127.0.0.1:1/dialect"}`,
		"not even JSON":    `{`,
		"unknown fragment": `{"$ref":"#/$defs/none"}`,
	} {
		require.Error(t, checkSchema([]byte(schema)), name)
		require.NotEmpty(t, validate([]byte(schema), []byte(`{}`)), name)
	}
	for name, schema := range map[string]string{
		"loop":        `{"$ref":"#"}`,
		"inner loop":  `{"allOf":[{"$ref":"#"}]}`,
		"exponential": exponential(60),
	} {
		require.NoError(t, checkSchema([]byte(schema)), name)
		require.NotEmpty(t, validate([]byte(schema), []byte(`{}`)), name)
	}
	require.Empty(t, validate([]byte(exponential(5)), []byte(`{}`)))
	deep := strings.Repeat(`{"a":`, 60) + `{}` + strings.Repeat(`}`, 60)
	require.Empty(t, validate([]byte(`{"properties":{"a":{"$ref":"#"}}}`), []byte(deep)), "recursion alone is no problem")
	require.NotEmpty(t, validate([]byte(`{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`),
		[]byte(deep)), "two references for each level")
}

// exponential returns a schema whose definitions each refer twice to the next one.
func exponential(levels int) string {
	var defs strings.Builder
	for i := range levels {
		fmt.Fprintf(&defs, `"d%[1]d":{"allOf":[{"$ref":"#/$defs/d%[2]d"},{"$ref":"#/$defs/d%[2]d"}]},`, i, i+1)
	}
	return fmt.Sprintf(`{"$ref":"#/$defs/d0","$defs":{%s"d%d":{}}}`, &defs, levels)
}

func TestViewsHaveTheNamesOfTheRecords(t *testing.T) {
	at := time.UnixMilli(1_790_000_000_000).UnixMilli()
	s := &gaterow.State{
		Open: []*gaterow.Gate{{
			Id: "g2", TurnId: "t1", CallId: "t1/0/tool-use/0", Kind: "tool", Tool: "pay", Args: []byte(`{"cents":5}`),
			ArgsSha256: "ab", Agent: "quay", Via: "turn", OpenedMs: at, ExpiresMs: at + 60_000, Dangerous: true,
		}},
		Closed: []*gaterow.Gate{{
			Id: "g1", Kind: "input", Tool: "ask_user", OpenedMs: at, ExpiresMs: at + 60_000, Allowed: []string{"answer"},
			Outcome: &gaterow.Outcome{Status: "approved", Cause: "human", Answer: []byte(`"Lisbon"`), By: "ines", WaitedMs: 40, AtMs: at + 40},
		}},
	}
	raw, err := json.Marshal(gates("s1", s))
	require.NoError(t, err)
	require.JSONEq(t, `[
		{"gate_id":"g2","session_id":"s1","status":"pending","turn_id":"t1","call_id":"t1/0/tool-use/0","kind":"tool","tool":"pay",
		 "args":{"cents":5},"args_sha256":"ab","allowed":["approve","deny"],"dangerous":true,"origin":{"agent":"quay","via":"turn"},
		 "requested_at":"2026-09-21T14:13:20Z","expires_at":"2026-09-21T14:14:20Z"},
		{"gate_id":"g1","session_id":"s1","status":"approved","kind":"input","tool":"ask_user","allowed":["answer"],"dangerous":false,
		 "origin":{},"requested_at":"2026-09-21T14:13:20Z","expires_at":"2026-09-21T14:14:20Z",
		 "outcome":{"status":"approved","cause":"human","answer":"Lisbon","by":"ines","waited_ms":40,
		  "ended_at":"2026-09-21T14:13:20.040Z"}}]`, string(raw))
	require.Empty(t, gates("s1", nil))
}
