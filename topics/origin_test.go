package topics

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// someOrigin draws an origin of few texts, so that two of them are often alike, or nearly.
func someOrigin(r *rapid.T, label string) Origin {
	text := func(name string) string {
		return rapid.SampledFrom([]string{"a", "b", "ab", "a/b", "/", "é", "\x01"}).Draw(r, label+name)
	}
	maybe := func(name string) string {
		return rapid.SampledFrom([]string{"", "a", "b", "\"", "a\nb"}).Draw(r, label+name)
	}
	return Origin{
		Channel: text("channel"), Account: text("account"), Recipient: text("recipient"), Thread: maybe("thread"),
		MessageID: maybe("message"), User: maybe("user"), UserName: maybe("name"),
		Group:   rapid.Bool().Draw(r, label+"group"),
		Adapter: rapid.SampledFrom([]Raw{nil, Raw(`{}`), Raw(`{"a":[1.10]}`)}).Draw(r, label+"adapter"),
	}
}

func TestOriginsRoundTrip(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		o := someOrigin(r, "")
		require.NoError(r, o.Check())
		again, err := DecodeOrigin(EncodeOrigin(o))
		require.NoError(r, err)
		require.Equal(r, o, again)
	})
}

// What Check accepts, DecodeOrigin reads again, whatever the texts need on the wire.
func TestValidOriginsAreNeverTooLargeToDecode(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := func(name string) string {
			unit := rapid.SampledFrom([]string{"\x01", "a", "\"", "é", "😀"}).Draw(r, name)
			return strings.Repeat(unit, rapid.IntRange(1, maxOriginText/len(unit)).Draw(r, name+" length"))
		}
		o := Origin{
			Channel: text("channel"), Account: text("account"), Recipient: text("recipient"), Thread: text("thread"),
			MessageID: text("message"), User: text("user"), UserName: text("name"),
			Adapter: Raw(`{"a":"` + strings.Repeat("a", rapid.IntRange(0, MaxAdapterData-8).Draw(r, "adapter")) + `"}`),
		}
		if o.Check() != nil {
			return
		}
		again, err := DecodeOrigin(EncodeOrigin(o))
		require.NoError(r, err)
		require.Equal(r, o, again)
	})
	// All texts at their limit as control characters are too much.
	full := strings.Repeat("\x01", maxOriginText)
	o := Origin{Channel: full, Account: full, Recipient: full, Thread: full, MessageID: full, User: full, UserName: full}
	require.ErrorIs(t, o.Check(), ErrType)
}

func TestOriginsAreOfOnePlaceIfAndOnlyIfTheyShareTheirSession(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a, b := someOrigin(r, "a "), someOrigin(r, "b ")
		if rapid.Bool().Draw(r, "same place") {
			b.Channel, b.Account, b.Recipient, b.Thread = a.Channel, a.Account, a.Recipient, a.Thread
		}
		same := [4]string{a.Channel, a.Account, a.Recipient, a.Thread} == [4]string{b.Channel, b.Account, b.Recipient, b.Thread}
		require.Equal(r, same, a.SamePlace(b))
		require.Equal(r, same, b.SamePlace(a))
		require.Equal(r, same, a.Session("harbor") == b.Session("harbor"))
		require.NotEqual(r, a.Session("harbor"), a.Session("pilot"), "each agent has its own conversation")
		require.NotEqual(r, a.Session("harbor"), a.EventID("harbor"))
	})
}

func TestEventIDsDependOnChannelAccountAndEventOnly(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a, b := someOrigin(r, "a "), someOrigin(r, "b ")
		event, other := rapid.StringN(0, 4, 8).Draw(r, "event"), rapid.StringN(0, 4, 8).Draw(r, "other")
		same := a.Channel == b.Channel && a.Account == b.Account && event == other
		require.Equal(r, same, a.EventID(event) == b.EventID(other))
	})
	// Joined, these texts would be the same.
	require.NotEqual(t, Origin{Channel: "a", Account: "bc"}.EventID("d"), Origin{Channel: "ab", Account: "c"}.EventID("d"))
}

func TestInvalidOriginsAreRejectedAndNotQuoted(t *testing.T) {
	secret := "hunter2"
	long := `"` + secret + strings.Repeat("x", maxOriginText) + `"`
	for _, raw := range []Raw{
		nil, Raw(`null`), Raw(`[]`), Raw(`"` + secret + `"`), Raw(`{"channel":"` + secret + `"`),
		Raw(`{}`), Raw(`{"channel":"c","account":"a"}`), Raw(`{"channel":"c","recipient":"` + secret + `"}`),
		Raw(`{"account":"a","recipient":"` + secret + `"}`), Raw(`{"channel":"","account":"a","recipient":"r"}`),
		Raw(`{"channel":["` + secret + `"],"account":"a","recipient":"r"}`),
		Raw(`{"channel":"c","account":"a","recipient":"r","thread":` + long + `}`),
		Raw(`{"channel":"c","account":"a","recipient":` + long + `}`),
		Raw(`{"channel":"c","account":"a","recipient":"r","adapter":"` + strings.Repeat("x", MaxAdapterData) + `"}`),
		Raw(`{"channel":"c","account":"a","recipient":"r","other":"` + strings.Repeat("x", MaxOrigin) + `"}`),
	} {
		o, err := DecodeOrigin(raw)
		require.Error(t, err, "%.60s", raw)
		require.NotContains(t, err.Error(), secret)
		require.Zero(t, o)
	}
}

func TestReplyDescriptorsOfChannelsNameTheirParts(t *testing.T) {
	origin, gate := Raw(`{"channel":"c"}`), Raw(`{"gate_id":"g"}`)
	route := OriginRoute(origin, nil)
	require.Equal(t, `{"origin":{"channel":"c"}}`, string(route))
	require.Equal(t, origin, OriginOf(route))
	require.Nil(t, GateAskOf(route))
	require.Nil(t, DelegationOf(route))
	require.Equal(t, gate, GateAskOf(OriginRoute(origin, gate)))

	task := EncodeDelegationTask(DelegationTask{Agent: "harbor", SessionID: "s", CallbackID: "c", Depth: 1})
	route = DelegationRoute(task)
	require.Equal(t, task, DelegationOf(route))
	require.Nil(t, OriginOf(route))
}

func TestDelegationRecordsWithoutRequiredFieldsArePoison(t *testing.T) {
	c := harbor(t)
	for _, record := range []string{
		`{}`, `{"session_id":"s"}`, `{"callback_id":"c","status":"failed"}`, `{"session_id":"s","callback_id":"c"}`,
		`{"session_id":"s","callback_id":"c","status":"open"}`, `{"session_id":"s","callback_id":"c","status":"lost"}`,
	} {
		poison(t, c.DelegationReplies.Codec(), record, ErrType)
	}
	for _, record := range []string{
		`{}`, `{"session_id":"s","callback_id":"c"}`, `{"session_id":"s","status":"open"}`, `{"callback_id":"c","status":"open"}`,
	} {
		poison(t, c.DelegationStatus.Codec(), record, ErrType)
	}
	for _, raw := range []Raw{
		nil, Raw(`null`), Raw(`{}`), Raw(`{"agent":"a","session_id":"s","callback_id":"c"}`),
		Raw(`{"agent":"a","session_id":"s","callback_id":"c","depth":0}`), Raw(`{"session_id":"s","callback_id":"c","depth":1}`),
	} {
		_, err := DecodeDelegationTask(raw)
		require.Error(t, err, "%s", raw)
	}
	for _, raw := range []Raw{nil, Raw(`[]`), Raw(`{"sender":"hand:a"}`), Raw(`{"callback_id":"c"}`)} {
		_, err := DecodeDelegationNote(raw)
		require.Error(t, err, "%s", raw)
	}
}

// A model writes the items of tool_uses, and must not choose where an answer goes or how deep a delegation is.
func TestModelsCannotSetTheOriginOrTheDepthOfACall(t *testing.T) {
	c := harbor(t)
	item := `{"tool_use_id":"t","name":"n","origin":{"channel":"c"},"delegation_depth":-9}`
	v := good(t, c.ThinkRequestResponse.Codec(), `{"tool_uses":[`+item+`],"toolUses":[`+item+`]}`)
	require.NotEmpty(t, v.ToolUses)
	for _, use := range v.ToolUses {
		require.Nil(t, use.Origin)
		require.Zero(t, use.Depth)
	}
	call := good(t, c.ToolUse.Codec(), item)
	require.Equal(t, `{"channel":"c"}`, string(call.Origin))
	require.EqualValues(t, -9, call.Depth)
}

func TestDecisionsWithoutAGateNeedAChannel(t *testing.T) {
	c := harbor(t).GateDecisions.Codec()
	poison(t, c, `{"session_id":"s","decision_id":"d","verdict":"approve","by":"u"}`, ErrType)
	good(t, c, `{"session_id":"s","decision_id":"d","verdict":"approve","by":"u","channel":{"channel":"c"}}`)
}
