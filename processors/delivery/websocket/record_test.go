package websocket

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// In FlightDeck, every browser received the token in message-output.
func TestNoBearerTokenIsInAFrame(t *testing.T) {
	for name, c := range map[string]struct{ suffix, value, want string }{
		"output": {
			"message-output", `{"reply_to":{"callbackService":"harbor","bearerToken":"s3cret"},"content":"x"}`,
			`{"reply_to":{"callbackService":"harbor"},"content":"x"}`,
		},
		"alone":    {"message-output", `{"reply_to":{"bearerToken":"s3cret"}}`, `{"reply_to":{}}`},
		"first":    {"message-input", `{"bearerToken":"s3cret", "a" : 1}`, `{"a":1}`},
		"deep":     {"tool-use", `{"input":[{"a":[[{"bearerToken":["s3cret"]}]]},2]}`, `{"input":[{"a":[[{}]]},2]}`},
		"snake":    {"tool-use", `{"bearer_token":"s3cret"}`, `{}`},
		"case":     {"tool-use", `{"BEARERTOKEN":"s3cret"}`, `{}`},
		"escaped":  {"tool-use", `{"\u0062earerToken":"s3cret"}`, `{}`},
		"twice":    {"tool-use", `{"bearerToken":"s3cret","a":1,"bearerToken":"s3cret"}`, `{"a":1}`},
		"its text": {"message-output", `{"content":"bearerToken"}`, `{"content":"bearerToken"}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			b := s.open().subscribe("s")
			s.take(c.suffix, "s", 7, c.value)
			g := b.next()
			require.NotContains(t, g.text, "s3cret")
			require.True(t, strings.HasSuffix(g.data, `,"value":`+c.want+`}`), g.data)
		})
	}
	s := newFixture(t)
	b := s.open().subscribe("s")
	for offset, broken := range []string{
		`{"reply_to":{"bearerToken":"s3cret"}`, `{"BearerToken":"s3cret"`, `{"\u0062earerToken":"s3cret"`,
		strings.Repeat("[", 2000) + `{"bearerToken":"s3cret"}`, "{\"bearerToken\":\"s3cret\xff\"}",
	} {
		s.take("message-output", "s", int64(offset), broken)
		require.Contains(t, b.next().data, `"rawValue":"(withheld)"`)
	}
	b.none("s")
}

func FuzzRecord(f *testing.F) {
	for _, seed := range []string{
		`{"reply_to":{"bearerToken":"s3cret"}}`, `{"\u0062earerToken":1}`, `[[{"a":null},"\ud83d"]]`, `{"a":1,"a":2}`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for feed := range feedCount {
			r := render(feed, "s", record("message-output", "s", 1, string(raw)))
			for _, open := range [][]byte{r.event, r.chat} {
				if open == nil {
					continue
				}
				frame := completed(open, "s", "id")
				value, ok := readable(frame)
				require.True(t, ok, "%q", frame)
				require.Empty(t, members(value, "bearerToken"))
				again, err := appendWithoutTokens(nil, decoder(frame))
				require.NoError(t, err)
				compacted, _ := readable(again)
				require.Equal(t, len(compacted), len(again), "no token is left")
			}
		}
	})
}
