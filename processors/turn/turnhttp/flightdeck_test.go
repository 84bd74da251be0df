package turnhttp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/token"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
)

// likeFlightDeck is the configuration of examples/processing.
func likeFlightDeck(c *turnhttp.Config) { c.FlightDeck = true }

func TestBodyThatIsNotJSONIsABadRequest(t *testing.T) {
	s := newFixture(t)
	minted, err := token.Mint(secret, token.Claims{SessionID: "s", ToolUseID: "t", Agent: text("pilot"), Expires: noon.Add(time.Second)})
	require.NoError(t, err)
	deep := `{"session_id":"s","content":"hi","x":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`
	for body, answer := range map[string]string{
		"hi": "is not JSON", `{"session_id":"s"`: "is not JSON", "{\"session_id\":\"\xff\"}": "is not JSON", deep: "is nested too deep",
	} {
		for _, path := range []string{turnhttp.ChatPath, turnhttp.ToolResponsePath} {
			g := s.send(request{path: path, body: body, headers: []string{"Authorization", "Bearer " + minted}})
			require.Equal(t, []any{400, `{"error":"Request body ` + answer + `"}`}, []any{g.status, g.body}, path)
		}
	}
	require.Empty(t, s.publisher.lines())
}

func TestMessageWithoutAUserHasNone(t *testing.T) {
	for more, user := range map[string]string{
		"": `null`, `,"user_id":null`: `null`, `,"user_id":" "`: `null`, `,"user_id":{}`: `null`, `,"user_id":[]`: `null`,
		`,"user_id":"u"`: `"u"`, `,"user_id":7`: `"7"`, `,"user_id":"null"`: `"null"`,
	} {
		s := newFixture(t)
		require.Equal(t, 200, s.chat(`{"session_id":"s","content":"hi"`+more+`}`).status, more)
		require.Equal(t, []string{strings.Replace(messageLine("s", "", "hi", ""), `"user_id":""`, `"user_id":`+user, 1)}, s.publisher.lines(), more)
	}
}
