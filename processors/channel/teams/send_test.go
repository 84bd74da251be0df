package teams_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/processors/channel/teams"
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/topics"
)

func (p *platform) chunk() adapter.Chunk {
	return adapter.Chunk{
		To: topics.Origin{
			Channel: "teams", Account: "main", Recipient: "19:abc@thread.tacv2", Thread: "1699", MessageID: "1700",
			Adapter: topics.Raw(`{"service_url":"` + p.service() + `","channel":true}`),
		},
		Text: "**a** <b>", Format: text.Markdown, Key: "d/0", Count: 1,
	}
}

func TestAnswerIsAReplyInTheThread(t *testing.T) {
	p := newPlatform(t)
	a := open(t, p.config())
	for range 2 {
		_, err := a.Send(t.Context(), p.chunk())
		require.NoError(t, err)
	}
	require.Equal(t, 1, p.issued, "the token is reused")
	require.Equal(t, "/emea/v3/conversations/19:abc@thread.tacv2%3Bmessageid=1699/activities/1700", p.paths[0])
	require.JSONEq(t, `{"type":"message","text":"**a** <b>","textFormat":"markdown","replyToId":"1700"}`, p.bodies[0])
	c := p.chunk()
	c.To.MessageID, c.Format = "", text.Plain
	sent, err := a.Send(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, adapter.Sent{ID: "sent-3"}, sent)
	require.Equal(t, "/emea/v3/conversations/19:abc@thread.tacv2%3Bmessageid=1699/activities", p.paths[2])
	require.JSONEq(t, `{"type":"message","text":"**a** <b>","textFormat":"plain"}`, p.bodies[2])
}

func TestThreadOutsideOfAChannelIsIgnored(t *testing.T) {
	p := newPlatform(t)
	c := p.chunk()
	c.To.Adapter = topics.Raw(`{"service_url":"` + p.service() + `"}`)
	c.To.Recipient = "a:1/../x"
	_, err := open(t, p.config()).Send(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, "/emea/v3/conversations/a:1%2F..%2Fx/activities/1700", p.paths[0])
}

func TestOnlyConfiguredServicesAreDialed(t *testing.T) {
	p := newPlatform(t)
	for _, data := range []string{
		``, `{}`, `[]`, `{"service_url":""}`, `{"service_url":"https://evil.example/"}`, `{"service_url":"` + p.url + `.evil.example/emea/"}`,
		`{"service_url":"http://127.0.0.1:1/emea/"}`, `{"service_url":"` + p.url + `@evil.example/"}`, `{"service_url":"` + p.url + `/emea/?x=1"}`,
		`{"service_url":"` + p.url + `/emea/#x"}`, `{"service_url":"` + p.url + `/../emea/"}`, `{"service_url":"https` + p.url[4:] + `/emea/"}`,
		`{"service_url":"//` + p.url[7:] + `/emea/"}`,
	} {
		c := p.chunk()
		if c.To.Adapter = nil; data != "" {
			c.To.Adapter = topics.Raw(data)
		}
		_, err := open(t, p.config()).Send(t.Context(), c)
		failure := &adapter.Failure{}
		require.ErrorAs(t, err, &failure)
		require.True(t, failure.Final, data)
		require.Contains(t, failure.Reason, "service URL")
	}
	require.Empty(t, p.paths)
	require.Zero(t, p.issued)
}

func TestRequestForApprovalIsACardWithButtons(t *testing.T) {
	p := newPlatform(t)
	c := p.chunk()
	c.Ask = &adapter.Ask{GateID: "g1", Tool: "rm_[x](evil)"}
	_, err := open(t, p.config()).Send(t.Context(), c)
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"message","text":"**a** <b>","textFormat":"markdown","replyToId":"1700","attachments":[
		{"contentType":"application/vnd.microsoft.card.adaptive","content":{"type":"AdaptiveCard","version":"1.2",
		"body":[{"type":"TextBlock","text":"Approve rm\\_xevil?","wrap":true}],"actions":[
		{"type":"Action.Submit","title":"Approve","data":{"turntable_gate":{"gate_id":"g1","approve":true}}},
		{"type":"Action.Submit","title":"Deny","data":{"turntable_gate":{"gate_id":"g1","approve":false}}}]}}]}`, p.bodies[0])
}

func TestRefusalsAreMapped(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   adapter.Failure
	}{
		"not in room": {403, `{"error":{"code":"BotNotInConversationRoster","message":"s3cret"}}`, adapter.Failure{Reason: "status 403 BotNotInConversationRoster", Status: 403, Final: true}},
		"unknown":     {404, `{"error":{"code":"ConversationNotFound"}}`, adapter.Failure{Reason: "status 404 ConversationNotFound", Status: 404, Final: true}},
		"too large":   {413, ``, adapter.Failure{Reason: "status 413", Status: 413, Final: true}},
		"redirect":    {307, ``, adapter.Failure{Reason: "status 307", Status: 307, Final: true}},
		"conflict":    {412, `{"error":{"code":"PreconditionFailed"}}`, adapter.Failure{Reason: "status 412 PreconditionFailed", Status: 412}},
		"limit":       {429, ``, adapter.Failure{Reason: "status 429", Status: 429, RetryAfter: 9 * time.Second}},
		"down":        {503, `<html>`, adapter.Failure{Reason: "status 503", Status: 503, RetryAfter: 9 * time.Second}},
	} {
		p := newPlatform(t)
		p.answer = func(w http.ResponseWriter, _ int) {
			w.Header().Set("Retry-After", "9")
			w.Header().Set("Location", "/other")
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}
		_, err := open(t, p.config()).Send(t.Context(), p.chunk())
		require.Equal(t, &c.want, err, name)
		require.Len(t, p.paths, 1)
	}
}

func TestRefusedTokenIsReplacedForTheNextAttempt(t *testing.T) {
	p := newPlatform(t)
	a := open(t, p.config())
	_, err := a.Send(t.Context(), p.chunk())
	require.NoError(t, err)
	p.issued = 5 // the platform has revoked the token
	_, err = a.Send(t.Context(), p.chunk())
	require.Equal(t, &adapter.Failure{Reason: "status 401", Status: 401}, err)
	_, err = a.Send(t.Context(), p.chunk())
	require.NoError(t, err)
	require.Equal(t, 6, p.issued)
}

func TestWrongSecretIsRetriedAndNotQuoted(t *testing.T) {
	p := newPlatform(t)
	c := p.config()
	c.Secret = "other"
	_, err := open(t, c).Send(t.Context(), p.chunk())
	require.Equal(t, &adapter.Failure{Reason: "no token: status 401", Status: 401}, err)
	c.TokenURL = "http://127.0.0.1:1/token"
	_, err = open(t, c).Send(t.Context(), p.chunk())
	require.Equal(t, &adapter.Failure{Reason: "no token: no connection"}, err)
}

func TestConnectionThatIsCutBetweenChunksIsAFailureOfThatChunk(t *testing.T) {
	p := newPlatform(t)
	p.answer = func(w http.ResponseWriter, n int) {
		if n == 2 {
			platformtest.Cut(w)
			return
		}
		_, _ = io.WriteString(w, `{"id":"s"}`)
	}
	a := open(t, p.config())
	_, err := a.Send(t.Context(), p.chunk())
	require.NoError(t, err)
	_, err = a.Send(t.Context(), p.chunk())
	require.Equal(t, &adapter.Failure{Reason: "connection lost"}, err)
	sent, err := a.Send(t.Context(), p.chunk())
	require.NoError(t, err)
	require.Equal(t, adapter.Sent{ID: "s"}, sent)
}

func TestTraitsAndConfiguration(t *testing.T) {
	p := newPlatform(t)
	a := open(t, p.config())
	require.Equal(t, "teams", a.Channel())
	require.Equal(t, adapter.Traits{Format: text.Markdown, Limit: text.Limit{Max: 12000, Unit: text.UTF16}, Threads: true, Buttons: true}, a.Traits())
	for name, err := range platformtest.Refused(t, teams.New, p.config(), map[string]func(*teams.Config){
		"no account":  func(c *teams.Config) { c.Account = "" },
		"no app":      func(c *teams.Config) { c.AppID = " " },
		"no secret":   func(c *teams.Config) { c.Secret = "" },
		"service":     func(c *teams.Config) { c.ServiceURLs = []string{"https://smba.trafficmanager.net/emea"} },
		"plain HTTP":  func(c *teams.Config) { c.ServiceURLs = []string{"http://s3cret.example"} },
		"metadata":    func(c *teams.Config) { c.MetadataURL = "http://s3cret.example" },
		"token":       func(c *teams.Config) { c.TokenURL = "s3cret" },
		"long before": func(c *teams.Config) { c.Timeout = -1 },
	}) {
		require.ErrorIs(t, err, teams.ErrConfig, name)
	}
}
