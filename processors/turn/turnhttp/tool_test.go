package turnhttp_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/token"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
)

func text(s string) *string { return &s }

func TestToolResponseAnswersAndWritesLikeFlightDeck(t *testing.T) {
	claims := token.Claims{SessionID: "s", ToolUseID: "t", Name: text("ask_pilot"), TotalTools: 2}
	for name, c := range map[string]struct{ body, result, status string }{
		"object":              {`{"berth" : "N4"}`, `{"berth":"N4"}`, "success"},
		"object with result":  {`{"result":"x"}`, `{"result":"x"}`, "success"},
		"text":                {`"N4"`, `{"result":"N4"}`, "success"},
		"number":              {`1.10`, `{"result":1.10}`, "success"},
		"boolean":             {`false`, `{"result":false}`, "success"},
		"array":               {` [1, null] `, `{"result":[1,null]}`, "success"},
		"null":                {`null`, `{}`, "success"},
		"empty":               {``, `{"result":null}`, "success"},
		"text after it":       {`{"a":1} and so on`, `{"a":1}`, "success"},
		"failure":             {`{"status":"error","error":"no berth"}`, `{"status":"error","error":"no berth"}`, "error"},
		"failure with detail": {`{"error":{"code":7},"status":"error"}`, `{"error":{"code":7},"status":"error"}`, "error"},
		"error alone":         {`{"error":"no berth"}`, `{"error":"no berth"}`, "success"},
		"status alone":        {`{"status":"error"}`, `{"status":"error"}`, "success"},
		"error null":          {`{"status":"error","error":null}`, `{"status":"error","error":null}`, "success"},
		"another status":      {`{"status":"Error","error":"x"}`, `{"status":"Error","error":"x"}`, "success"},
		"failure within":      {`{"a":{"status":"error","error":"x"}}`, `{"a":{"status":"error","error":"x"}}`, "success"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			g := s.callback(c.body, claims)
			require.Equal(t, []any{202, `{"status":"accepted","tool_use_id":"t"}`}, []any{g.status, g.body})
			require.Equal(t, "application/json", g.header.Get("Content-Type"))
			require.Empty(t, g.header.Get("Access-Control-Allow-Origin"))
			require.Equal(t, []string{`pilot-tool-use-result s {"session_id":"s","tool_use_id":"t","name":"ask_pilot",` +
				`"result":` + c.result + `,"latency_ms":0,"status":"` + c.status + `","total_tools":2,` +
				`"timestamp":"2026-09-21T14:13:20.120Z"}`}, s.publisher.lines())
		})
	}
}

func TestToolResponseTakesTheCallFromTheToken(t *testing.T) {
	s := newFixture(t)
	s.callback(`{}`, token.Claims{
		SessionID: `,"tool_id":null`, ToolUseID: `a"b`, ToolID: text("id"), IssuedAt: noon.Add(-90 * time.Second),
	})
	s.callback(`{}`, token.Claims{SessionID: `,"tool_id":null`, ToolUseID: `a"b`, IssuedAt: noon.Add(time.Hour)})
	require.Equal(t, []string{
		`pilot-tool-use-result ,"tool_id":null {"session_id":",\"tool_id\":null","tool_use_id":"a\"b","tool_id":"id",` +
			`"name":null,"result":{},"latency_ms":90120,"status":"success","total_tools":0,` +
			`"timestamp":"2026-09-21T14:13:20.120Z"}`,
		`pilot-tool-use-result ,"tool_id":null {"session_id":",\"tool_id\":null","tool_use_id":"a\"b",` +
			`"name":null,"result":{},"latency_ms":0,"status":"success","total_tools":0,"timestamp":"2026-09-21T14:13:20.120Z"}`,
	}, s.publisher.lines())
}

func TestToolResponseVerifiesTheTokenFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t, likeFlightDeck)
		minted, err := token.Mint(secret, token.Claims{
			SessionID: "s", ToolUseID: "t", Agent: text("pilot"), Expires: noon.Add(time.Second),
		})
		require.NoError(t, err)
		const broken = "Internal server error"
		half := strings.Split(minted, ".")[0]
		for name, c := range map[string]struct {
			method, authorization, body string
			status                      int
			answer                      string
		}{
			"get":              {"GET", "Bearer " + minted, "", 405, "Method not allowed"},
			"options":          {"OPTIONS", "Bearer " + minted, "", 405, "Method not allowed"},
			"none":             {"", "", "not JSON", 401, "Missing token"},
			"other scheme":     {"", "Basic " + minted, "", 401, "Missing token"},
			"other case":       {"", "bearer " + minted, "", 401, "Missing token"},
			"no blank":         {"", "Bearer" + minted, "", 401, "Missing token"},
			"blank":            {"", "Bearer   ", "", 401, "Missing token"},
			"no dot":           {"", "Bearer " + half, "not JSON", 401, "Malformed token"},
			"not base64":       {"", "Bearer " + half + ".a+b", "", 401, "Token is not valid base64url"},
			"not signed":       {"", "Bearer " + half + ".aaaa", "", 401, "Bad token signature"},
			"not JSON":         {"", "Bearer " + minted, "{", 500, "Internal server error"},
			"not UTF-8":        {"", "Bearer " + minted, "\"\xff\"", 500, "Internal server error"},
			"too large":        {"", "Bearer " + minted, strings.Repeat(" ", 1<<20+1), 413, "Request body is too large"},
			"nested too deep":  {"", "Bearer " + minted, strings.Repeat("[", 995) + strings.Repeat("]", 995), 500, broken},
			"blanks around it": {"", "Bearer  " + minted + " ", "{}", 202, ""},
			"the old secret":   {"", "Bearer " + must(token.Mint(oldSecret, token.Claims{Agent: text("pilot"), Expires: noon})), "{}", 202, ""},
		} {
			a := request{method: c.method, path: turnhttp.ToolResponsePath, body: c.body}
			if c.authorization != "" {
				a.headers = []string{"Authorization", c.authorization, "Authorization", "Bearer second"}
			}
			g := s.send(a)
			require.Equal(t, c.status, g.status, "%s: %s", name, g.body)
			if c.answer != "" {
				require.Equal(t, `{"error":"`+c.answer+`"}`, g.body, name)
			}
			require.Empty(t, g.header.Get("Access-Control-Allow-Origin"), name)
		}
		s.clock.Advance(2 * time.Second)
		g := s.send(request{path: turnhttp.ToolResponsePath, body: "{}", headers: []string{"Authorization", "Bearer " + minted}})
		require.Equal(t, []any{401, `{"error":"Token has expired"}`}, []any{g.status, g.body})
		require.Len(t, s.publisher.lines(), 2)
	})
}

func must(s string, err error) string {
	if err != nil {
		panic(err)
	}
	return s
}

func TestCallbacksAreRejectedWithoutASecret(t *testing.T) {
	g := newFixture(t, func(c *turnhttp.Config) { c.CallbackSecrets = nil }).callback("{}", token.Claims{SessionID: "s", ToolUseID: "t"})
	require.Equal(t, []any{401, `{"error":"Server is not configured to verify callback tokens"}`}, []any{g.status, g.body})
}

func TestTokensAreBoundToTheirAgentUnlessLoosened(t *testing.T) {
	const other = `{"error":"Token is for another agent"}`
	for name, bound := range map[string]bool{"by default": true, "loosened": false} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, func(c *turnhttp.Config) { c.TokensOfAnyAgent = !bound })
			require.Equal(t, 202, s.callback("{}", token.Claims{Agent: text("pilot")}).status)
			g := s.callback("{}", token.Claims{Agent: text("harbor")})
			none := must(token.Mint(secret, token.Claims{Expires: noon}))
			unnamed := s.send(request{path: turnhttp.ToolResponsePath, headers: []string{"Authorization", "Bearer " + none}})
			if !bound {
				require.Equal(t, []int{202, 202}, []int{g.status, unnamed.status})
				return
			}
			require.Equal(t, []any{401, other, 401, other}, []any{g.status, g.body, unnamed.status, unnamed.body})
		})
	}
}

// flightDecks is a token without an expiry, as FlightDeck accepts it: {"session_id":"s","tool_use_id":"t","agent":"pilot"}.
func flightDecks() string {
	payload := []byte(`{"session_id":"s","tool_use_id":"t","agent":"pilot"}`)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(payload)
	return base64.RawURLEncoding.EncodeToString(payload) + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func TestTokensWithoutExpiryAreRejectedUnlessAllowed(t *testing.T) {
	callback := request{path: turnhttp.ToolResponsePath, headers: []string{"Authorization", "Bearer " + flightDecks()}}
	g := newFixture(t).send(callback)
	require.Equal(t, []any{401, `{"error":"Token has no expiry"}`}, []any{g.status, g.body})
	require.Equal(t, 202, newFixture(t, func(c *turnhttp.Config) { c.TokensWithoutExpiry = true }).send(callback).status)
}

func TestSingleUseTokenIsRejectedOnceItsResultIsWritten(t *testing.T) {
	s := newFixture(t, func(c *turnhttp.Config) { c.SingleUseTokens = true })
	claims := token.Claims{SessionID: "s", ToolUseID: "t", CallID: "f00/1/tool-use/0"}
	s.publisher.fail(errors.New("no leader"))
	require.Equal(t, 500, s.callback("{}", claims, "Idempotency-Key", "k").status)
	s.publisher.fail(nil)
	require.Equal(t, 202, s.callback("{}", claims, "Idempotency-Key", "k").status, "the first one was not written")
	require.Equal(t, 202, s.callback("{}", claims, "Idempotency-Key", "k").status, "the same request")
	for _, headers := range [][]string{nil, {"Idempotency-Key", "l"}} {
		g := s.callback("{}", claims, headers...)
		require.Equal(t, []any{401, `{"error":"Token has been used"}`}, []any{g.status, g.body})
	}
	claims.CallID = "f00/2/tool-use/0"
	require.Equal(t, 202, s.callback("{}", claims).status, "another call")
	require.Len(t, s.publisher.lines(), 2)
	require.Equal(t, 202, newFixture(t, func(c *turnhttp.Config) { c.SingleUseTokens = true }).callback("{}", claims).status, "another process")
}

func TestSingleUseTokenThatIsUsedTwiceAtATimeWritesOneResult(t *testing.T) {
	s := newFixture(t, func(c *turnhttp.Config) { c.SingleUseTokens = true })
	s.publisher.gate = make(chan struct{})
	answers := make(chan int, 5)
	for range 5 {
		go func() { answers <- s.callback("{}", token.Claims{SessionID: "s", ToolUseID: "t"}).status }()
	}
	s.publisher.gate <- struct{}{}
	got := map[int]int{}
	for range 5 {
		got[<-answers]++
	}
	require.Equal(t, map[int]int{202: 1, 401: 4}, got)
	require.Len(t, s.publisher.lines(), 1)
}

func TestToolResponseIsAcceptedAfterAcknowledgement(t *testing.T) {
	s := newFixture(t)
	s.publisher.fail(errors.New("no leader"))
	g := s.callback("{}", token.Claims{SessionID: "s"})
	require.Equal(t, []any{500, `{"error":"Internal server error"}`}, []any{g.status, g.body})
}

// The turn takes a result whose ID begins with that of a call only for that call.
func TestResultHasTheIDOfTheCallThatTheTokenNames(t *testing.T) {
	s, again := newFixture(t), newFixture(t)
	claims := token.Claims{SessionID: "s", ToolUseID: "call_0", Name: text("weather"), CallID: "f00/1/tool-use/0"}
	later := claims
	later.CallID = "f00/2/tool-use/0"
	for _, f := range []*fixture{s, again} { // another process writes the same IDs
		f.callback("{}", claims)
		f.callback("{}", claims)
		f.callback(`{"a":1}`, claims)
		f.callback("{}", claims, "Idempotency-Key", "k")
		require.Equal(t, 202, f.callback(`{"b":1}`, later, "Idempotency-Key", "k").status, "the key is that of another call")
	}
	ids := idsOf(s)
	require.Equal(t, idsOf(again), ids)
	require.Len(t, ids, 5)
	for _, id := range ids[:4] {
		require.Regexp(t, "^f00/1/tool-use/0/callback/[0-9a-f]{32}$", id)
	}
	require.Regexp(t, "^f00/2/tool-use/0/callback/[0-9a-f]{32}$", ids[4])
	require.Equal(t, ids[0], ids[1], "the same result")
	require.NotEqual(t, ids[0], ids[2])
	require.NotContains(t, ids[:3], ids[3])
}

func idsOf(s *fixture) (ids []string) {
	for _, r := range s.publisher.records {
		ids = append(ids, string(r.Headers["turntable.id"]))
	}
	return ids
}
