package telegram

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/topics"
)

func read(t *testing.T, raw string) (adapter.Inbound, bool) {
	t.Helper()
	a, _ := newAdapter(t, defaultBaseURL)
	var u update
	require.NoError(t, platform.Decode([]byte(raw), &u))
	return a.inbound(u)
}

const fromAnn = `"from":{"id":9,"is_bot":false,"first_name":"Ann","last_name":"Lee"}`

func TestPrivateMessage(t *testing.T) {
	in, ok := read(t, `{"update_id":12,"message":{"message_id":5,`+fromAnn+`,"date":1700000000,"chat":{"id":9,"type":"private"},"text":"hello","new_member":{"x":1}}}`)
	require.True(t, ok)
	require.Equal(t, adapter.Inbound{
		Event: "12", Text: "hello", At: time.Unix(1700000000, 0).UTC(),
		Origin: topics.Origin{Channel: "telegram", Account: "main", Recipient: "9", MessageID: "5", User: "9", UserName: "Ann Lee"},
	}, in)
	require.NoError(t, in.Origin.Check())
}

func TestThreadIsSetForTopicsOnly(t *testing.T) {
	in, ok := read(t, `{"update_id":12,"message":{"message_id":5,"message_thread_id":31,"is_topic_message":true,`+fromAnn+`,"chat":{"id":-1007,"type":"supergroup"},"text":"x"}}`)
	require.True(t, ok)
	require.Equal(t, "31", in.Origin.Thread)
	require.True(t, in.Origin.Group)
	in, ok = read(t, `{"update_id":12,"message":{"message_id":5,"message_thread_id":31,`+fromAnn+`,"chat":{"id":-1007,"type":"supergroup"},"text":"x"}}`)
	require.True(t, ok)
	require.Empty(t, in.Origin.Thread)
}

func TestMentions(t *testing.T) {
	for name, c := range map[string]struct {
		members   string
		text      string
		mentioned bool
	}{
		"none":              {`"text":"hi @turntable_bot"`, "hi @turntable_bot", false}, // no entity: not a mention
		"at the beginning":  {`"text":"@Turntable_Bot, hi","entities":[{"type":"mention","offset":0,"length":14}]`, "hi", true},
		"after an emoji":    {`"text":"👍 @turntable_bot hi","entities":[{"type":"mention","offset":3,"length":14}]`, "👍 @turntable_bot hi", true},
		"of another":        {`"text":"@other hi","entities":[{"type":"mention","offset":0,"length":6}]`, "@other hi", false},
		"without a name":    {`"text":"Bot hi","entities":[{"type":"text_mention","offset":0,"length":3,"user":{"id":4242,"is_bot":true}}]`, "hi", true},
		"command":           {`"text":"/stop@turntable_bot now","entities":[{"type":"bot_command","offset":0,"length":19}]`, "/stop now", true},
		"another's command": {`"text":"/stop@other_bot","entities":[{"type":"bot_command","offset":0,"length":15}]`, "/stop@other_bot", false},
		"plain command":     {`"text":"/stop","entities":[{"type":"bot_command","offset":0,"length":5}]`, "/stop", false},
		"caption":           {`"caption":"@turntable_bot look","caption_entities":[{"type":"mention","offset":0,"length":14}]`, "look", true},
		"reply":             {`"text":"yes","reply_to_message":{"message_id":4,"from":{"id":4242,"is_bot":true},"chat":{"id":-7,"type":"group"}}`, "yes", true},
		"reply to another":  {`"text":"yes","reply_to_message":{"message_id":4,"from":{"id":8},"chat":{"id":-7,"type":"group"}}`, "yes", false},
		"topic of the bot":  {`"text":"yes","is_topic_message":true,"message_thread_id":4,"reply_to_message":{"message_id":4,"from":{"id":4242,"is_bot":true},"chat":{"id":-7}}`, "yes", false},
		"hostile entities":  {`"text":"ab","entities":[{"type":"mention","offset":-1,"length":9},{"type":"mention","offset":1,"length":9223372036854775807}]`, "ab", false},
	} {
		in, ok := read(t, `{"update_id":1,"message":{"message_id":5,`+fromAnn+`,"chat":{"id":-7,"type":"group"},`+c.members+`}}`)
		require.True(t, ok, name)
		require.Equal(t, c.text, in.Text, name)
		require.Equal(t, c.mentioned, in.Mentioned, name)
	}
}

func TestWhatNoPersonWroteIsDropped(t *testing.T) {
	for name, raw := range map[string]string{
		"bot":             `{"update_id":1,"message":{"message_id":5,"from":{"id":1,"is_bot":true},"chat":{"id":1},"text":"x"}}`,
		"no sender":       `{"update_id":1,"message":{"message_id":5,"chat":{"id":1},"text":"x"}}`,
		"no text":         `{"update_id":1,"message":{"message_id":5,` + fromAnn + `,"chat":{"id":1}}}`,
		"channel post":    `{"update_id":1,"message":{"message_id":5,"from":{"id":777000,"is_bot":false},"sender_chat":{"id":-1009},"is_automatic_forward":true,"chat":{"id":-1007},"text":"x"}}`,
		"edited":          `{"update_id":1,"edited_message":{"message_id":5,` + fromAnn + `,"chat":{"id":1},"text":"x"}}`,
		"unknown data":    `{"update_id":1,"callback_query":{"id":"q","from":{"id":9},"message":{"message_id":5,"chat":{"id":1}},"data":"buy:1"}}`,
		"empty gate":      `{"update_id":1,"callback_query":{"id":"q","from":{"id":9},"message":{"message_id":5,"chat":{"id":1}},"data":"approve:"}}`,
		"inline callback": `{"update_id":1,"callback_query":{"id":"q","from":{"id":9},"inline_message_id":"m","data":"approve:g"}}`,
		"nothing":         `{"update_id":1}`,
	} {
		_, ok := read(t, raw)
		require.False(t, ok, name)
	}
}

// What a person forwards, or takes from an inline bot, another one wrote: it can be a message, but no command.
func TestForwardedTextIsNotThePersons(t *testing.T) {
	for members, foreign := range map[string]bool{
		`"text":"/stop"`: false,
		`"text":"/stop","forward_origin":{"type":"user","date":1700000000,"sender_user":{"id":8}}`: true,
		`"text":"/stop","forward_date":1700000000`:                                                 true, // of older versions of the API
		`"text":"/stop","via_bot":{"id":8,"is_bot":true}`:                                          true,
	} {
		in, ok := read(t, `{"update_id":1,"message":{"message_id":5,`+fromAnn+`,"chat":{"id":9,"type":"private"},`+members+`}}`)
		require.True(t, ok, members)
		require.Equal(t, foreign, in.Foreign, members)
	}
}

func TestPressedButtonIsADecision(t *testing.T) {
	for data, approve := range map[string]bool{"approve:g-1": true, "deny:g-1": false} {
		in, ok := read(t, `{"update_id":3,"callback_query":{"id":"q1","from":{"id":9,"first_name":"Ann"},"message":{"message_id":6,"message_thread_id":31,"is_topic_message":true,"from":{"id":4242,"is_bot":true},"chat":{"id":-1007,"type":"supergroup"}},"data":"`+data+`"}}`)
		require.True(t, ok)
		require.Equal(t, &adapter.Decision{GateID: "g-1", Approve: approve}, in.Decision)
		require.Equal(t, topics.Origin{Channel: "telegram", Account: "main", Recipient: "-1007", Thread: "31", MessageID: "6", User: "9", UserName: "Ann", Group: true}, in.Origin)
		require.Empty(t, in.Text)
	}
}

func TestAnyNameFitsAnOrigin(t *testing.T) {
	in, ok := read(t, `{"update_id":1,"message":{"message_id":5,"from":{"id":9,"first_name":"`+strings.Repeat("é", 999)+`"},"chat":{"id":9,"type":"private"},"text":"x"}}`)
	require.True(t, ok)
	require.NoError(t, in.Origin.Check())
}

func TestAddressedNeverPanicsAndKeepsOtherTexts(t *testing.T) {
	a, _ := newAdapter(t, defaultBaseURL)
	rapid.Check(t, func(t *rapid.T) {
		written := rapid.String().Draw(t, "text")
		var entities []entity
		for range rapid.IntRange(0, 4).Draw(t, "n") {
			entities = append(entities, entity{
				Type:   rapid.SampledFrom([]string{"mention", "text_mention", "bot_command", "url"}).Draw(t, "type"),
				Offset: rapid.IntRange(-2, 40).Draw(t, "offset"), Length: rapid.Int().Draw(t, "length"),
			})
		}
		rest, mentioned := a.addressed(written, entities)
		if !mentioned {
			require.Equal(t, written, rest)
		}
	})
}
