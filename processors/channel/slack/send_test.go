package slack_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/processors/channel/slack"
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/topics"
)

func chunk() adapter.Chunk {
	return adapter.Chunk{
		To:   topics.Origin{Channel: "slack", Account: "main", Recipient: "C1", Thread: "1699.000001", MessageID: "1699.000002"},
		Text: "*a* &lt;b&gt;", Format: text.SlackMrkdwn, Key: "delivery/0", Count: 1,
	}
}

func TestMessageIsPostedToTheThread(t *testing.T) {
	p := &platform{}
	sent, err := open(t, config(p.start(t))).Send(t.Context(), chunk())
	require.NoError(t, err)
	require.Equal(t, adapter.Sent{ID: "1700000000.000001"}, sent)
	form := p.forms[0]
	require.Equal(t, "C1", form.Get("channel"))
	require.Equal(t, "1699.000001", form.Get("thread_ts"))
	require.Equal(t, "*a* &lt;b&gt;", form.Get("text"))
	require.Equal(t, "false", form.Get("unfurl_links"))
	require.Equal(t, "false", form.Get("unfurl_media"))
	require.False(t, form.Has("blocks"))
	require.JSONEq(t, `{"event_type":"turntable_message","event_payload":{"key":"delivery/0"}}`, form.Get("metadata"))
}

func TestMessageOutsideOfAThreadStartsNone(t *testing.T) {
	p := &platform{}
	c := chunk()
	c.To.Thread = ""
	_, err := open(t, config(p.start(t))).Send(t.Context(), c)
	require.NoError(t, err)
	require.False(t, p.forms[0].Has("thread_ts"))
}

func TestFormats(t *testing.T) {
	for format, want := range map[text.Format][2]string{
		text.SlackMrkdwn: {"text", "<x> & *y*"}, text.Markdown: {"markdown_text", "<x> & *y*"}, text.Plain: {"text", "&lt;x&gt; &amp; *y*"},
	} {
		p := &platform{}
		c := chunk()
		c.Format, c.Text = format, "<x> & *y*"
		_, err := open(t, config(p.start(t))).Send(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, want[1], p.forms[0].Get(want[0]), format)
		require.Equal(t, want[0] == "text", p.forms[0].Has("text"), format)
		require.Equal(t, format == text.Plain, p.forms[0].Get("mrkdwn") == "false", format)
	}
}

func TestTextMentionsNobodyInAnyFormat(t *testing.T) {
	const hostile = "<!channel> <!here|here> <@U1> <#C1> `<!everyone>` <!subteam^S1>"
	for _, format := range []text.Format{text.SlackMrkdwn, text.Markdown, text.Plain, text.TelegramHTML} {
		for _, ask := range []*adapter.Ask{nil, {GateID: "gate-1", Tool: "rm"}} {
			p := &platform{}
			c := chunk()
			c.Format, c.Text, c.Ask = format, text.Render(hostile, format), ask
			_, err := open(t, config(p.start(t))).Send(t.Context(), c)
			require.NoError(t, err)
			for _, member := range []string{"text", "markdown_text"} {
				require.NotRegexp(t, `<[!@#]`, p.forms[0].Get(member), "%s %s", format, member)
			}
			if format != text.Plain && format != text.TelegramHTML { // plain_text blocks have no mentions
				require.NotRegexp(t, `(<|\\u003c)[!@#]`, p.forms[0].Get("blocks"), "%s", format)
			}
		}
	}
}

func TestRequestForApprovalHasButtons(t *testing.T) {
	p := &platform{}
	c := chunk()
	c.Ask = &adapter.Ask{GateID: "gate-1", Tool: "rm"}
	_, err := open(t, config(p.start(t))).Send(t.Context(), c)
	require.NoError(t, err)
	require.JSONEq(t, `[{"type":"section","text":{"type":"mrkdwn","text":"*a* &lt;b&gt;","verbatim":true}},
		{"type":"actions","block_id":"turntable_gate","elements":[
		{"type":"button","action_id":"turntable_approve","value":"gate-1","style":"primary","text":{"type":"plain_text","text":"Approve","emoji":false}},
		{"type":"button","action_id":"turntable_deny","value":"gate-1","style":"danger","text":{"type":"plain_text","text":"Deny","emoji":false}}]}]`,
		p.forms[0].Get("blocks"))
	require.Equal(t, "*a* &lt;b&gt;", p.forms[0].Get("text"), "for notifications")
}

func TestRefusalsWithStatus200AreFailures(t *testing.T) {
	for code, final := range map[string]bool{
		"channel_not_found": true, "not_in_channel": true, "is_archived": true, "msg_too_long": true, "restricted_action": true,
		"thread_not_found": true, "account_inactive": false, "invalid_auth": false, "token_revoked": false, "internal_error": false,
		"fatal_error": false, "some_new_error": false,
	} {
		p := &platform{answer: func(w http.ResponseWriter, _ int) { _, _ = io.WriteString(w, `{"ok":false,"error":"`+code+`"}`) }}
		sent, err := open(t, config(p.start(t))).Send(t.Context(), chunk())
		require.Equal(t, &adapter.Failure{Reason: code, Status: 200, Final: final}, err, code)
		require.Empty(t, sent)
	}
}

func TestWrongTokenIsRetriedAndNotQuoted(t *testing.T) {
	p := &platform{}
	c := config(p.start(t))
	c.Token = "xoxb-other"
	_, err := open(t, c).Send(t.Context(), chunk())
	require.Equal(t, &adapter.Failure{Reason: "invalid_auth", Status: 200}, err)
	require.Empty(t, p.forms)
}

func TestResponsesWithoutASuccessAreFailures(t *testing.T) {
	for name, body := range map[string]string{
		"no error": `{"ok":false}`, "empty": ``, "HTML": `<html>`, "no timestamp": `{"ok":true,"channel":"C1"}`,
		"quotes text": `{"ok":false,"error":"\u0000\u00e9"}`, "huge": strings.Repeat(" ", 2<<20),
	} {
		p := &platform{answer: func(w http.ResponseWriter, _ int) { _, _ = io.WriteString(w, body) }}
		_, err := open(t, config(p.start(t))).Send(t.Context(), chunk())
		require.Equal(t, &adapter.Failure{Reason: "response is not understood", Status: 200}, err, name)
	}
}

func TestAnswerOfAProxyIsRetried(t *testing.T) {
	for status, final := range map[int]bool{http.StatusForbidden: false, http.StatusNotFound: false, http.StatusBadRequest: true} {
		p := &platform{answer: func(w http.ResponseWriter, _ int) { w.WriteHeader(status) }}
		_, err := open(t, config(p.start(t))).Send(t.Context(), chunk())
		require.Equal(t, &adapter.Failure{Reason: "status " + strconv.Itoa(status), Status: status, Final: final}, err)
	}
}

func TestRateLimitsAreHonoured(t *testing.T) {
	for name, c := range map[string]struct {
		status     int
		retryAfter string
		want       adapter.Failure
	}{
		"429":                 {429, "30", adapter.Failure{Reason: "status 429", Status: 429, RetryAfter: 30 * time.Second}},
		"429 with a date":     {429, start.Add(time.Minute).Format(http.TimeFormat), adapter.Failure{Reason: "status 429", Status: 429, RetryAfter: time.Minute}},
		"429 without":         {429, "", adapter.Failure{Reason: "status 429", Status: 429}},
		"200 with a header":   {200, "20", adapter.Failure{Reason: "ratelimited", Status: 200, RetryAfter: 20 * time.Second}},
		"200 without":         {200, "", adapter.Failure{Reason: "ratelimited", Status: 200, RetryAfter: time.Second}},
		"503":                 {503, "5", adapter.Failure{Reason: "status 503", Status: 503, RetryAfter: 5 * time.Second}},
		"401":                 {401, "", adapter.Failure{Reason: "status 401", Status: 401}},
		"a redirect":          {302, "", adapter.Failure{Reason: "status 302", Status: 302, Final: true}},
		"success of no kind":  {204, "", adapter.Failure{Reason: "response is not understood", Status: 204}},
		"413 of a proxy":      {413, "", adapter.Failure{Reason: "status 413", Status: 413, Final: true}},
		"408 of a proxy":      {408, "", adapter.Failure{Reason: "status 408", Status: 408}},
		"429 with a bad time": {429, "soon", adapter.Failure{Reason: "status 429", Status: 429}},
	} {
		p := &platform{answer: func(w http.ResponseWriter, _ int) {
			if c.retryAfter != "" {
				w.Header().Set("Retry-After", c.retryAfter)
			}
			w.Header().Set("Location", "/api/other")
			w.WriteHeader(c.status)
			if c.status != 204 {
				_, _ = io.WriteString(w, `{"ok":false,"error":"ratelimited"}`)
			}
		}}
		_, err := open(t, config(p.start(t))).Send(t.Context(), chunk())
		require.Equal(t, &c.want, err, name)
		require.Len(t, p.forms, 1, "the adapter sends once: %s", name)
	}
}

func TestConnectionThatIsCutBetweenChunksIsAFailureOfThatChunk(t *testing.T) {
	p := &platform{answer: func(w http.ResponseWriter, n int) {
		if n == 2 {
			platformtest.Cut(w)
			return
		}
		_, _ = io.WriteString(w, `{"ok":true,"channel":"C1","ts":"1.2"}`)
	}}
	a := open(t, config(p.start(t)))
	c := chunk()
	_, err := a.Send(t.Context(), c)
	require.NoError(t, err)
	c.Key, c.Index, c.Count = "delivery/1", 1, 2
	_, err = a.Send(t.Context(), c)
	require.Equal(t, &adapter.Failure{Reason: "connection lost"}, err)
	_, err = a.Send(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, p.forms[1].Get("metadata"), p.forms[2].Get("metadata"), "the key is the same")
}

func TestSlackThatIsDownIsAFailureWithoutTheAddress(t *testing.T) {
	_, err := open(t, config("http://127.0.0.1:1")).Send(t.Context(), chunk())
	require.Equal(t, &adapter.Failure{Reason: "no connection"}, err)
}

func TestTraits(t *testing.T) {
	a := open(t, config("http://127.0.0.1:1"))
	require.Equal(t, "slack", a.Channel())
	require.Equal(t, adapter.Traits{
		Format: text.SlackMrkdwn, Limit: text.Limit{Max: 3000, Unit: text.UTF16}, Threads: true, Buttons: true,
	}, a.Traits())
}

func TestConfigurationIsValidated(t *testing.T) {
	for name, err := range platformtest.Refused(t, slack.New, config("https://slack.example"), map[string]func(*slack.Config){
		"no account":       func(c *slack.Config) { c.Account = "" },
		"no token":         func(c *slack.Config) { c.Token = "" },
		"no header":        func(c *slack.Config) { c.Token = "xoxb-s3cret\r\nX: y" },
		"no secret":        func(c *slack.Config) { c.SigningSecrets = nil },
		"short secret":     func(c *slack.Config) { c.SigningSecrets = []string{"s3cret"} },
		"plain HTTP":       func(c *slack.Config) { c.URL = "http://slack.example/s3cret" },
		"negative timeout": func(c *slack.Config) { c.Timeout = -1 },
	}) {
		require.ErrorIs(t, err, slack.ErrConfig, name)
	}
}
