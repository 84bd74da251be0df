package peerwire_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/peerwire"
	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
)

// with is a valid body with more members.
func with(members string) string {
	return `{"taskId":"t-9","parentInstanceId":"hq-1","content":"c"` + members + `}`
}

func TestRequestIsReadWhole(t *testing.T) {
	req, refusal := peerwire.ReadRequest([]byte(with(`,"parentRunId":"r","parentSessionId":"s","agentId":" front ","model":" m ",
		"timeoutMs":1500.9,"hopCount":3,"instanceChain":["hq-1","x"],"callback":{"token":" T1","later":1},"later":[{}]`)))
	require.Nil(t, refusal)
	require.Equal(t, peerwire.Request{
		TaskID: "t-9", ParentInstanceID: "hq-1", Content: "c", ParentRunID: "r", ParentSessionID: "s", AgentID: "front",
		Model: " m ", Timeout: 1500 * time.Millisecond, Path: peerwire.Path{Hops: 3, Chain: []string{"hq-1", "x"}},
		CallbackToken: " T1",
	}, req)
}

func TestRequestsThatAreAccepted(t *testing.T) {
	for _, body := range []string{
		`{"taskId":" ","parentInstanceId":"","content":" "}`,
		with(`,"parentRunId":null,"parentSessionId":null,"agentId":null,"model":null,"timeoutMs":null,"hopCount":null,"instanceChain":null,"callback":null`),
		with(`,"agentId":"  ","model":"","timeoutMs":-1.5`), with(`,"timeoutMs":0`), with(`,"timeoutMs":1e300`),
		with(`,"unknown":{"a":1}`), with(`,"content":5,"content":"the last one counts"`), with(`,"instanceChain":[]`),
		with(`,"content":"a cut emoji \ud83d"`), "\n " + with(``) + " \r\n", with(",\"content\":\"\xff\""),
		`{"taskId":"` + strings.Repeat("😀", 512) + `","parentInstanceId":"","content":"c"}`,
	} {
		req, refusal := peerwire.ReadRequest([]byte(body))
		require.Nil(t, refusal, "%.80s", body)
		require.NotEmpty(t, req.TaskID)
		require.Equal(t, 1, req.Path.Hops, "a request has come one hop at least")
		require.Equal(t, peerwire.Trim(req.AgentID), req.AgentID)
		require.True(t, req.Timeout >= 0 && req.Timeout <= peerwire.MaxTimeout)
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	long := strings.Repeat("x", 1025)
	for status, bodies := range map[int][]string{
		413: {
			strings.Repeat(" ", peerwire.MaxBody+1), with(`,"x":"` + strings.Repeat("x", peerwire.MaxBody) + `"`),
			strings.Repeat("x", peerwire.MaxBody+1),
		},
		400: {
			`{`, `{"a"}`, `x`, with(``) + `x`, with(``) + with(``), "\ufeff{", `{"a":` + strings.Repeat(`[`, 64) + strings.Repeat(`]`, 64) + `}`, `{'a':1}`,
		},
		-400: {
			``, " \n\t\u00a0\ufeff", `{}`, `null`, `[]`, `"x"`, `5`, `[{"taskId":"t","parentInstanceId":"","content":"c"}]`,
			`{"parentInstanceId":"","content":"c"}`, `{"taskId":"t","content":"c"}`, `{"taskId":"t","parentInstanceId":""}`,
			`{"taskId":"","parentInstanceId":"","content":"c"}`, `{"taskId":"t","parentInstanceId":"","content":""}`,
			`{"taskId":null,"parentInstanceId":"","content":"c"}`, `{"taskId":"t","parentInstanceId":null,"content":"c"}`,
			`{"taskId":5,"parentInstanceId":"","content":"c"}`, `{"taskId":"t","parentInstanceId":{},"content":"c"}`,
			`{"taskId":"t","parentInstanceId":"","content":["c"]}`, `{"taskId":"\ud83d","parentInstanceId":"","content":"c"}`,
			"{\"taskId\":\"\xff\",\"parentInstanceId\":\"\",\"content\":\"c\"}",
			`{"TaskId":"t","parentInstanceId":"","content":"c"}`, `{"taskId":"` + long + `","parentInstanceId":"","content":"c"}`,
			with(`,"agentId":123`), with(`,"parentRunId":true`), with(`,"parentSessionId":[]`), with(`,"model":{}`),
			with(`,"timeoutMs":"5"`), with(`,"timeoutMs":1e999`), with(`,"timeoutMs":true`), with(`,"content":"c","content":5`),
			with(`,"parentInstanceId":"` + long + `"`), with(`,"parentRunId":"` + long + `"`), with(`,"agentId":"` + long + `"`),
			with(`,"hopCount":-1`), with(`,"hopCount":1.5`), with(`,"hopCount":"1"`), with(`,"hopCount":1e10`),
			with(`,"instanceChain":"a"`), with(`,"instanceChain":[5]`), with(`,"instanceChain":[""]`), with(`,"instanceChain":{}`),
			with(`,"callback":{}`), with(`,"callback":"T1"`), with(`,"callback":[]`), with(`,"callback":{"token":5}`),
			with(`,"callback":{"token":" "}`), with(`,"callback":{"token":null}`), with(`,"callback":{"token":"a\nb"}`),
			with(`,"callback":{"token":"` + strings.Repeat("T", peerwire.MaxToken+1) + `"}`),
			with(`,"instanceChain":["` + long + `"]`), with(`,"instanceChain":[` + strings.Repeat(`"a",`, 64) + `"a"]`),
		},
	} {
		for _, body := range bodies {
			_, refusal := peerwire.ReadRequest([]byte(body))
			require.NotNil(t, refusal, "%.80s", body)
			switch status {
			case 413:
				require.Equal(t, peerwire.TooLarge(), refusal, "%.80s", body)
			case 400:
				require.Equal(t, &peerwire.Refusal{Status: 400, Code: peerwire.CodeInvalidJSON, Text: "Invalid JSON body"}, refusal, "%.80s", body)
			default:
				require.Equal(t, 400, refusal.Status)
				require.Equal(t, peerwire.CodeInvalidRequest, refusal.Code, "%.80s", body)
				for _, name := range []string{"taskId", "parentInstanceId", "content", "parentRunId", "parentSessionId", "agentId", "model", "timeoutMs"} {
					require.Contains(t, refusal.Text, name, "it does not say which field is wrong")
				}
			}
		}
	}
	_, refusal := peerwire.ReadRequest([]byte(with(`,"x":"` + strings.Repeat("x", peerwire.MaxBody-len(with(`,"x":""`))) + `"`)))
	require.Nil(t, refusal, "exactly the limit")
}

// anyRequest draws a request that a dispatcher may send.
func anyRequest(t *rapid.T) peerwire.Request {
	text := rapid.StringN(0, 5, -1)
	some := rapid.StringN(1, 5, -1)
	r := peerwire.Request{
		TaskID: some.Draw(t, "task"), ParentInstanceID: text.Draw(t, "parent"), Content: some.Draw(t, "content"),
		ParentRunID: text.Draw(t, "run"), ParentSessionID: text.Draw(t, "session"), AgentID: peerwire.Trim(text.Draw(t, "agent")),
		Model: text.Draw(t, "model"), Timeout: time.Duration(rapid.IntRange(0, 600_000).Draw(t, "timeout")) * time.Millisecond,
	}
	r.CallbackToken = rapid.StringMatching(`([!-~]{1,5})?`).Draw(t, "callback")
	r.Path.Chain = append(r.Path.Chain, rapid.SliceOfN(some, 0, 3).Draw(t, "chain")...)
	r.Path.Hops = max(1, len(r.Path.Chain)) + rapid.IntRange(0, 2).Draw(t, "hops")
	return r
}

func TestRequestSurvivesItsBody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyRequest(t)
		got, refusal := peerwire.ReadRequest(want.Body())
		require.Nil(t, refusal)
		require.Equal(t, want, got)
		require.Equal(t, want.Hash(), got.Hash())
	})
}

func TestHashIsThatOfTheTaskAndNotOfTheAttempt(t *testing.T) {
	base := with(`,"agentId":"front","timeoutMs":9000,"instanceChain":["a","b"]`)
	same := "{ \"agentId\":\" front\", \"later\":1, \"instanceChain\":[\"a\",\"b\"],\"callback\":{\"token\":\"T\"}," + with(``)[1:]
	hash := func(body string) string {
		req, refusal := peerwire.ReadRequest([]byte(body))
		require.Nil(t, refusal)
		return req.Hash()
	}
	require.Equal(t, hash(base), hash(same))
	seen := map[string]bool{hash(base): true}
	for _, other := range []string{
		`,"agentId":"frontx"`, `,"agentId":"front","instanceChain":["ab"]`, `,"agentId":"front","instanceChain":["b","a"]`,
		`,"agentId":"front","instanceChain":["a","b"],"hopCount":3`, `,"agentId":"front","instanceChain":["a","b"],"content":"d"`,
		`,"agentId":"front","instanceChain":["a","b"],"model":"m"`, `,"agentId":"front","instanceChain":["a","b"],"parentRunId":"m"`,
		`,"agentId":"front","instanceChain":["a","b"],"parentSessionId":"m"`, `,"agentId":"front","instanceChain":["a","b"],"taskId":"m"`,
		`,"agentId":"front","instanceChain":["a","b"],"parentInstanceId":"m"`,
	} {
		h := hash(with(other))
		require.False(t, seen[h], other)
		seen[h] = true
	}
}

func TestFormattedRequestHasNoTexts(t *testing.T) {
	r := peerwire.Request{
		TaskID: "t-9", ParentInstanceID: "secret", Content: "secret", ParentRunID: "secret", ParentSessionID: "secret",
		AgentID: "secret", Model: "secret", CallbackToken: "secret", Path: peerwire.Path{Hops: 1, Chain: []string{"secret"}},
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "request", r)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "request", r, "at", &r)
	for _, text := range []string{
		fmt.Sprint(r), fmt.Sprintf("%+v", &r), fmt.Sprintf("%#v", r), fmt.Sprintf("%+v", []peerwire.Request{r}), log.String(),
	} {
		require.NotContains(t, text, "secret")
		require.Contains(t, text, "t-9")
	}
}

func TestPathGrowsAndIsChecked(t *testing.T) {
	first := peerwire.Path{Hops: 1, Chain: append(make([]string, 0, 4), "hq-1")}
	require.Equal(t, first, peerwire.Path{}.Via("hq-1"))
	second, other := first.Via("a-1"), first.Via("b-1")
	require.Equal(t, peerwire.Path{Hops: 2, Chain: []string{"hq-1", "a-1"}}, second, "paths share no memory")
	require.Equal(t, peerwire.Path{Hops: 2, Chain: []string{"hq-1", "b-1"}}, other)

	require.Nil(t, second.Check("c-1", 2))
	require.Equal(t, 403, second.Check("c-1", 1).Status)
	require.Equal(t, 409, second.Check("hq-1", 1).Status, "a loop is told first")
	require.Nil(t, second.Check("HQ-1", 2))
}

func TestCountOfHopsIsAtLeastTheLengthOfTheChain(t *testing.T) {
	for members, want := range map[string]int{
		``: 1, `,"hopCount":0`: 1, `,"hopCount":3`: 3, `,"instanceChain":["a","b"]`: 2, `,"hopCount":1,"instanceChain":["a","b"]`: 2,
		`,"hopCount":5,"instanceChain":["a","b"]`: 5,
	} {
		req, refusal := peerwire.ReadRequest([]byte(with(members)))
		require.Nil(t, refusal)
		require.Equal(t, want, req.Path.Hops, members)
	}
}

func TestTasksHaveDifferentKeysAndSessions(t *testing.T) {
	text := rapid.OneOf(rapid.StringN(0, 4, -1), rapid.SampledFrom([]string{
		"", "a", "a_b", "a:b", "a", "日本", "中国", "😀", "peer", strings.Repeat("x", 32) + "1", strings.Repeat("x", 32) + "2",
	}))
	rapid.Check(t, func(t *rapid.T) {
		label, task := text.Draw(t, "label"), text.Draw(t, "task")
		otherLabel, otherTask := text.Draw(t, "other label"), text.Draw(t, "other task")
		same := label == otherLabel && task == otherTask
		require.Equal(t, same, peerwire.SessionID(label, task) == peerwire.SessionID(otherLabel, otherTask))
		require.Equal(t, same, peerwire.TaskKey(label, task) == peerwire.TaskKey(otherLabel, otherTask))
		require.Regexp(t, `^peer:[A-Za-z0-9_-]{0,32}:[0-9a-f]{32}$`, peerwire.SessionID(label, task))
	})
	require.NotEqual(t, peerwire.SessionID("ab", "c"), peerwire.SessionID("a", "bc"))
	// Stored keys must not change with a new version.
	require.Equal(t, "32bbcf994a9f082f0493562f3a67baa4", peerwire.TaskKey("partner-b", "t-9"))
	require.Equal(t, "peer:partner-b:5ef9990a86eaf7e9d36d457efc84e3d4", peerwire.SessionID("partner-b", "t-9"))
}

func TestLengthIsThatOfJavaScript(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "é": 1, "日本": 2, "😀": 2, "e\u0301": 2, "\ufffd": 1} {
		require.Equal(t, want, peerwire.Length(text), text)
	}
}

func TestTrimIsThatOfJavaScript(t *testing.T) {
	for _, space := range "\t\n\v\f\r \u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff" {
		require.Equal(t, "a b", peerwire.Trim(fmt.Sprintf("%ca b%c", space, space)), "%U", space)
	}
	for _, other := range "\u0085\u200b\u180e\x00" {
		require.NotEqual(t, "a", peerwire.Trim(fmt.Sprintf("a%c", other)), "%U", other)
	}
}

func TestTokensOfHeaders(t *testing.T) {
	for header, want := range map[string]string{
		"Bearer T": "T", "bearer T": "T", "BEARER    T ": "T", "  Bearer T": "T", "Bearer a b": "a b", "Bearer\tT": "T",
		"Bearer": "", "Bearer ": "", "": "", "Basic T": "", "BearerT": "", "T": "", "Bearer" + strings.Repeat(" ", 8<<10) + "T": "",
		"Bearer: T": "",
	} {
		token, ok := peerwire.Bearer([]string{header})
		require.Equal(t, want != "", ok, header)
		if ok {
			require.Equal(t, want, token, header)
		}
	}
	for _, values := range [][]string{nil, {}, {"Bearer T", "Bearer T"}, {"", "Bearer T"}} {
		_, ok := peerwire.Bearer(values)
		require.False(t, ok)
	}
}
