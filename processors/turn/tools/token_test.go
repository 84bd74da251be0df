package tools_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/token"
	"github.com/turntable-streams/turntable/processors/turn/tools"
)

// A turn ends before the callback of its call. The token of that call must not answer a call of the next turn that has the same
// tool_use_id, whether the call is of the same tool or of another.
func TestTokenOfAnEarlierCallAnswersNoLaterCall(t *testing.T) {
	both(t, func(t *testing.T, p *pilot) {
		tokens := make(chan string, 2)
		pending := func(_ context.Context, c tools.Call) (any, error) {
			minted, err := c.Token()
			tokens <- minted
			return tools.Pending{}, err
		}
		p.work(map[string]tools.Func{"weather": pending, "pay": pending}, tools.Config{})
		for _, tool := range []string{"pay", "weather"} {
			session := "then " + tool
			p.chat(session, "weather/call_0")
			early := take(t, tokens)
			p.cancel(session)
			require.Equal(t, "error", *take(t, p.outputs).Status)

			p.chat(session, tool+"/call_0 "+tool+"/call_1")
			own, other := take(t, tokens), take(t, tokens)
			if claimsOf(t, own).ToolUseID != "call_0" {
				own, other = other, own
			}
			p.callBack(other, `{"said":"other"}`)
			p.callBack(early, `{"said":"forged"}`)
			p.callBack(early, `{"said":"forged"}`, "Idempotency-Key", "k")
			p.callBack(own, `{"said":"own"}`, "Idempotency-Key", "k")
			require.JSONEq(t, `[
				{"tool_use_id":"call_0","name":"`+tool+`","result":{"said":"own"},"status":"success"},
				{"tool_use_id":"call_1","name":"`+tool+`","result":{"said":"other"},"status":"success"}
			]`, take(t, p.outputs).Content)
		}
	})
}

func claimsOf(t *testing.T, minted string) token.Claims {
	t.Helper()
	return claimsAt(t, minted, time.Now())
}

func claimsAt(t *testing.T, minted string, now time.Time) token.Claims {
	t.Helper()
	v, err := token.NewVerifier(secret)
	require.NoError(t, err)
	claims, err := v.For("pilot").Verify(minted, now)
	require.NoError(t, err)
	return claims
}

// Tokens of builds that did not know the ID of a call, and the records of FlightDeck's workers, answer the open call that has
// their tool_use_id and tool.
func TestTokenWithoutACallIDAnswersTheOpenCallOfItsTool(t *testing.T) {
	both(t, func(t *testing.T, p *pilot) {
		calls := make(chan string, 1)
		p.work(map[string]tools.Func{"pay": func(_ context.Context, c tools.Call) (any, error) {
			minted, err := c.Token()
			calls <- minted
			return tools.Pending{}, err
		}}, tools.Config{})
		p.chat("s", "pay/call_0")
		claims := claimsOf(t, take(t, calls))
		claims.CallID = ""
		for _, tool := range []string{"weather", "pay"} {
			claims.Name = &tool
			minted, err := token.Mint(secret, claims)
			require.NoError(t, err)
			p.callBack(minted, `{"said":"`+tool+`"}`)
		}
		require.JSONEq(t, `[{"tool_use_id":"call_0","name":"pay","result":{"said":"pay"},"status":"success"}]`,
			take(t, p.outputs).Content)
	})
}
