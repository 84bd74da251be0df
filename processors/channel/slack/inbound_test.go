package slack_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/topics"
)

const api = "http://127.0.0.1:1"

func TestChallengeIsAnsweredOnlyIfItIsSigned(t *testing.T) {
	a := open(t, config(api))
	const body = `{"token":"x","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P","type":"url_verification"}`
	w := serve(a, &platformtest.Inbox{}, request("application/json", body))
	require.Equal(t, 200, w.Code)
	require.Equal(t, "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P", w.Body.String())
	require.Contains(t, w.Header().Get("Content-Type"), "text/plain")
	r := request("application/json", body)
	r.Header.Set("X-Slack-Signature", "v0=00")
	w = serve(a, &platformtest.Inbox{}, r)
	require.Equal(t, 401, w.Code)
	require.NotContains(t, w.Body.String(), "3eZ")
}

func TestMessageIsReceivedWithItsOrigin(t *testing.T) {
	got := post(t, open(t, config(api)), `{"type":"message","channel":"C1","channel_type":"channel","user":"U1",
		"text":"<@UBOT> look at <https://x.example|this> &amp; tell <@U2>","ts":"1700000000.000200","thread_ts":"1699.1"}`)
	require.Equal(t, []adapter.Inbound{{
		Event: "message/C1/1700000000.000200", Text: "look at this (https://x.example) & tell @U2", Mentioned: true, Guild: "T1",
		Origin: topics.Origin{
			Channel: "slack", Account: "main", Recipient: "C1", Thread: "1699.1", MessageID: "1700000000.000200", User: "U1", Group: true,
		},
		At: time.Unix(1700000000, 0).UTC(),
	}}, got)
}

func TestDirectMessageIsNotAGroup(t *testing.T) {
	for channel, want := range map[string]bool{
		`"D1","channel_type":"im"`: false, `"D1"`: false, `"G1","channel_type":"mpim"`: true, `"C1","channel_type":"channel"`: true,
		`"C1"`: true, `"D1","channel_type":"group"`: true,
	} {
		got := post(t, open(t, config(api)), `{"type":"message","channel":`+channel+`,"user":"U1","text":"hi","ts":"1.2"}`)
		require.Len(t, got, 1)
		require.Equal(t, want, got[0].Origin.Group, channel)
		require.Empty(t, got[0].Origin.Thread, "a message outside of a thread has none")
		require.False(t, got[0].Mentioned)
	}
}

func TestMessageAndMentionOfOneTextAreOneMessage(t *testing.T) {
	const members = `"channel":"C1","user":"U1","text":"<@UBOT> hi","ts":"1700000000.1"}`
	mention, message := `{"type":"app_mention",`+members, `{"type":"message","channel_type":"channel",`+members
	for _, order := range [][]string{{mention, message}, {message, mention}} {
		a, to := open(t, config(api)), &platformtest.Inbox{}
		for i, e := range order {
			body := strings.Replace(event(e), "Ev1", "Ev"+strconv.Itoa(i), 1)
			require.Equal(t, 200, serve(a, to, request("application/json", body)).Code)
		}
		require.Len(t, to.Tried, 1)
		require.True(t, to.Tried[0].Mentioned)
		require.Equal(t, "hi", to.Tried[0].Text)
	}
}

// Without the ID of the bot, only the app_mention says that it is mentioned, and a policy may have dropped the message.
func TestMentionIsPassedAfterTheSameMessageWithoutOne(t *testing.T) {
	a, to := open(t, config(api)), &platformtest.Inbox{}
	for _, kind := range []string{"message", "app_mention", "message"} {
		body := strings.Replace(event(`{"type":"`+kind+`","channel":"C1","user":"U1","text":"<@UBOT> hi","ts":"1.2"}`), `"is_bot":true`, `"is_bot":false`, 1)
		require.Equal(t, 200, serve(a, to, request("application/json", body)).Code)
	}
	require.Len(t, to.Tried, 2)
	require.Equal(t, to.Tried[0].Event, to.Tried[1].Event, "the receiver recognises it")
	require.True(t, to.Tried[1].Mentioned)
}

func TestReplyInAThreadOfTheBotIsAMention(t *testing.T) {
	got := post(t, open(t, config(api)), `{"type":"message","channel":"C1","user":"U1","text":"yes","ts":"2.1","thread_ts":"1.1","parent_user_id":"UBOT"}`)
	require.True(t, got[0].Mentioned)
}

func TestBotsEditsAndOwnMessagesAreDropped(t *testing.T) {
	for name, members := range map[string]string{
		"bot":         `"user":"U1","bot_id":"B1","text":"x","ts":"1.2"`,
		"bot subtype": `"subtype":"bot_message","user":"U1","text":"x","ts":"1.2"`,
		"own":         `"user":"UBOT","text":"x","ts":"1.2"`,
		"slackbot":    `"user":"USLACKBOT","text":"x","ts":"1.2"`,
		"edit":        `"subtype":"message_changed","message":{"user":"U1","text":"x"},"hidden":true,"ts":"1.2"`,
		"edit user":   `"subtype":"message_changed","user":"U1","ts":"1.2"`,
		"deleted":     `"subtype":"message_deleted","user":"U1","ts":"1.2"`,
		"join":        `"subtype":"channel_join","user":"U1","ts":"1.2"`,
		"hidden":      `"user":"U1","hidden":true,"text":"x","ts":"1.2"`,
		"no user":     `"text":"x","ts":"1.2"`,
	} {
		require.Empty(t, post(t, open(t, config(api)), `{"type":"message","channel":"C1",`+members+`}`), name)
	}
	for _, e := range []string{`{"type":"channel_created","channel":{"id":"C1"}}`, `{"type":"user_change","user":{"id":"U1"}}`, `null`, `[]`} {
		require.Empty(t, post(t, open(t, config(api)), e), "other events are acknowledged")
	}
	c := config(api)
	c.BotUser = "U1"
	require.Empty(t, post(t, open(t, c), `{"type":"message","channel":"C1","user":"U1","text":"x","ts":"1.2"}`))
}

func TestEventsOfOtherAppsAndWorkspacesAreDropped(t *testing.T) {
	for _, change := range [][2]string{{`"T1","api`, `"T2","api`}, {"A1", "A2"}} {
		to := &platformtest.Inbox{}
		body := strings.Replace(event(`{"type":"message","channel":"C1","user":"U1","text":"x","ts":"1.2"}`), change[0], change[1], 1)
		require.Equal(t, 200, serve(open(t, config(api)), to, request("application/json", body)).Code)
		require.Empty(t, to.Tried)
	}
}

func TestRetriesAreHarmless(t *testing.T) {
	a, to := open(t, config(api)), &platformtest.Inbox{Err: errors.New("no broker")}
	body := event(`{"type":"message","channel":"C1","user":"U1","text":"x","ts":"1.2"}`)
	require.Equal(t, 503, serve(a, to, request("application/json", body)).Code)
	to.Err = nil
	for i := range 3 {
		r := request("application/json", body)
		r.Header.Set("X-Slack-Retry-Num", strconv.Itoa(i+1))
		r.Header.Set("X-Slack-Retry-Reason", "http_timeout")
		require.Equal(t, 200, serve(a, to, r).Code)
	}
	require.Len(t, to.Tried, 2, "the one that failed and its first repeat")
	require.Equal(t, to.Tried[0], to.Tried[1])
}

// Slack sends an event again after 3 s.
func TestReceiverHasLessThanThreeSeconds(t *testing.T) {
	called := false
	to := adapter.ReceiverFunc(func(ctx context.Context, _ adapter.Inbound) error {
		called = true
		end, ok := ctx.Deadline()
		require.True(t, ok)
		require.Less(t, time.Until(end), 3*time.Second)
		return context.DeadlineExceeded
	})
	body := event(`{"type":"message","channel":"C1","user":"U1","text":"x","ts":"1.2"}`)
	require.Equal(t, 503, serve(open(t, config(api)), to, request("application/json", body)).Code)
	require.True(t, called)
}

func TestForgedAndOldRequestsAreRefused(t *testing.T) {
	body := event(`{"type":"message","channel":"C1","user":"U1","text":"x","ts":"1.2"}`)
	for name, change := range map[string]func(*http.Request){
		"no signature": func(r *http.Request) { r.Header.Del("X-Slack-Signature") },
		"no timestamp": func(r *http.Request) { r.Header.Del("X-Slack-Request-Timestamp") },
		"no number":    func(r *http.Request) { r.Header.Set("X-Slack-Request-Timestamp", "now") },
		"newer stamp": func(r *http.Request) {
			r.Header.Set("X-Slack-Request-Timestamp", strconv.FormatInt(start.Unix()+1, 10))
		},
		"two signatures": func(r *http.Request) { r.Header.Add("X-Slack-Signature", "v0=0") },
		"version":        func(r *http.Request) { r.Header.Set("X-Slack-Signature", "v1"+r.Header.Get("X-Slack-Signature")[2:]) },
		"another body":   func(r *http.Request) { r.Body = request("", body+" ").Body },
	} {
		to := &platformtest.Inbox{}
		r := request("application/json", body)
		change(r)
		require.Equal(t, 401, serve(open(t, config(api)), to, r).Code, name)
		require.Empty(t, to.Tried)
	}
	for skew, want := range map[time.Duration]int{
		5 * time.Minute: 200, -5 * time.Minute: 200, 5*time.Minute + time.Second: 401, -5*time.Minute - time.Second: 401,
	} {
		c := config(api)
		c.Clock = clock.NewFake(start.Add(skew))
		require.Equal(t, want, serve(open(t, c), &platformtest.Inbox{}, request("application/json", body)).Code, skew)
	}
}

// The example of https://docs.slack.dev/authentication/verifying-requests-from-slack.
func TestSignatureOfTheDocumentationIsAccepted(t *testing.T) {
	const body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	c := config(api)
	c.Clock = clock.NewFake(time.Unix(1531420618, 0))
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Slack-Request-Timestamp", "1531420618")
	r.Header.Set("X-Slack-Signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503")
	require.Equal(t, 400, serve(open(t, c), &platformtest.Inbox{}, r).Code, "signed, but a slash command is no interaction")
}

func TestHostileBodiesAreRefused(t *testing.T) {
	a := open(t, config(api))
	for _, body := range []string{
		``, `[]`, `"x"`, `{"type":"event_callback","type":"url_verification","challenge":"x"}`, `{"type":1}`, `{} {}`,
		"{\"type\":\"\xff\"}", `{"type":"url_verification"}`, `{"type":"url_verification","challenge":"` + strings.Repeat("x", 2000) + `"}`,
		event(`{"type":"message","channel":"C1","user":"U1","user":"U2","text":"x","ts":"1.2"}`),
		event(`{"type":"message","channel":"` + strings.Repeat("C", 600) + `","user":"U1","text":"x","ts":"1.2"}`),
	} {
		to := &platformtest.Inbox{}
		require.Equal(t, 400, serve(a, to, request("application/json", body)).Code, body)
		require.Empty(t, to.Tried)
	}
	require.Equal(t, 413, serve(a, &platformtest.Inbox{}, request("application/json", `{"x":"`+strings.Repeat("x", 1<<20)+`"}`)).Code)
	require.Equal(t, 415, serve(a, &platformtest.Inbox{}, request("text/plain", `{}`)).Code)
	r := request("application/json", `{}`)
	r.Method = http.MethodGet
	require.Equal(t, 405, serve(a, &platformtest.Inbox{}, r).Code)
}

func press(members string) string {
	payload := `{"type":"block_actions","api_app_id":"A1","team":{"id":"T1","domain":"x"},"user":{"id":"U1","username":"ann","team_id":"T1"},` +
		`"container":{"type":"message"},"trigger_id":"1.2.3",` + members + `}`
	return url.Values{"payload": {payload}}.Encode()
}

func TestPressedButtonIsADecision(t *testing.T) {
	for action, approve := range map[string]bool{"turntable_approve": true, "turntable_deny": false} {
		to := &platformtest.Inbox{}
		body := press(`"channel":{"id":"C1","name":"x"},"message":{"ts":"1700.2","thread_ts":"1699.1"},
			"actions":[{"action_id":"` + action + `","block_id":"b","value":"gate-1","type":"button","action_ts":"1700000009.5"}]`)
		require.Equal(t, 200, serve(open(t, config(api)), to, request("application/x-www-form-urlencoded", body)).Code)
		require.Equal(t, []adapter.Inbound{{
			Event: "action/C1/1700.2/U1/1700000009.5/" + action, Mentioned: true, Guild: "T1",
			Origin: topics.Origin{
				Channel: "slack", Account: "main", Recipient: "C1", Thread: "1699.1", MessageID: "1700.2", User: "U1", UserName: "ann", Group: true,
			},
			Decision: &adapter.Decision{GateID: "gate-1", Approve: approve}, At: time.Unix(1700000009, 0).UTC(),
		}}, to.Tried)
	}
}

// People may start a thread under the question, which does not change where it was asked.
func TestButtonOfTheFirstMessageOfAThreadIsOutsideOfIt(t *testing.T) {
	to := &platformtest.Inbox{}
	body := press(`"channel":{"id":"D1"},"message":{"ts":"1700.2","thread_ts":"1700.2"},"actions":[{"action_id":"turntable_deny","value":"g","action_ts":"1.1"}]`)
	require.Equal(t, 200, serve(open(t, config(api)), to, request("application/x-www-form-urlencoded", body)).Code)
	require.Empty(t, to.Tried[0].Origin.Thread)
	require.False(t, to.Tried[0].Origin.Group)
}

func TestOtherInteractionsAreNoDecisions(t *testing.T) {
	const place = `"channel":{"id":"C1"},"message":{"ts":"1.2"},`
	for status, bodies := range map[int][]string{
		200: {
			press(place + `"actions":[{"action_id":"other","value":"g","action_ts":"1.1"}]`),
			press(place + `"actions":[{"action_id":"turntable_approve","action_ts":"1.1"}]`),
			press(place + `"actions":[]`), press(`"actions":[{"action_id":"turntable_approve","value":"g","action_ts":"1.1"}]`),
			strings.Replace(press(place+`"actions":[{"action_id":"turntable_approve","value":"g","action_ts":"1.1"}]`), "A1", "A2", 1),
		},
		400: {
			"", "payload=", "payload={}&payload={}", "payload=%zz", "x=1",
			press(place + `"actions":[{"action_id":"turntable_approve","value":"g","action_ts":"1.1","value":"h"}]`),
		},
	} {
		for _, body := range bodies {
			to := &platformtest.Inbox{}
			require.Equal(t, status, serve(open(t, config(api)), to, request("application/x-www-form-urlencoded", body)).Code, body)
			require.Empty(t, to.Tried)
		}
	}
}

func TestTextIsReadable(t *testing.T) {
	a := open(t, config(api))
	for i, c := range [][2]string{
		{"<@UBOT> /new", "/new"},
		{"<@UBOT|bot>: <@UBOT>, hi", "hi"},
		{"hi <@UBOT>", "hi @UBOT"},
		{"<@UBOTTOM> hi", "@UBOTTOM hi"},
		{"&lt;@UBOT&gt; &amp;lt;", "<@UBOT> &lt;"},
		{"<#C2|general> <!here> <!subteam^S1|@ops> <!date^1^x|today>", "#general @here @ops today"},
		{"<https://a.example> <http://b.example|b.example> <mailto:a@b.example|a@b.example>", "https://a.example http://b.example mailto:a@b.example"},
		{"a < b > c", "a < b > c"},
		{"<@UBOT", "<@UBOT"},
		{"  x\n", "x"},
	} {
		got := post(t, a, fmt.Sprintf(`{"type":"message","channel":"C1","user":"U1","text":%q,"ts":"%d.1"}`, c[0], i+1))
		require.Len(t, got, 1)
		require.Equal(t, c[1], got[0].Text)
	}
}
