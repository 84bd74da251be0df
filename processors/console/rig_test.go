package console_test

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/console"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

func TestMain(m *testing.M) {
	testbroker.Together(4)
	goleak.VerifyTestMain(testbroker.Main(m), leaktest.Libraries()...)
}

// hostile is a text that tries to be markup, a template, a script and another line.
const hostile = `"><script>document.title='owned'</script><img src=x onerror=alert(1)>{{.}}` + "\u202e" + `'`

// play is the model: "pay N" and "edit" ask for the tool with a gate, "wait" for one that does not return, "boom" fails.
func play(_ context.Context, s think.Step) (think.Reply, error) {
	cost := 0.25
	text := topics.Text(s.Input().Content)
	if s.Input().Role == nil || *s.Input().Role != "user" {
		return think.Reply{Blocks: think.Say("Done.").Blocks, Cost: &cost}, nil
	}
	call := func(name, input string) (think.Reply, error) {
		return think.Reply{Blocks: []think.Block{{Call: &think.Call{ID: s.Key, Name: name, Input: topics.Raw(input)}}}, Cost: &cost}, nil
	}
	switch verb, rest, _ := strings.Cut(text, " "); verb {
	case "pay":
		return call("pay", `{"to":"otto","cents":`+rest+`}`)
	case "write":
		return call("pay", `{"path":"notes.txt","old_string":"one\ntwo\nthree\n","new_string":"one\n2\nthree\nfour\n"}`)
	case "hostile":
		return call("pay", `{"to":`+fmt.Sprintf("%q", hostile)+`}`)
	case "wait":
		return call("wait", `{}`)
	}
	return think.Reply{Blocks: think.Say("Hello, " + text).Blocks, Cost: &cost}, nil
}

// field is an agent with a console.
type field struct {
	t     *testing.T
	addrs []string
	name  string
	agent *agent.Agent
	to    *processors.KafkaPublisher
	site  *httptest.Server
	stop  func()
	ended chan struct{}
}

// callers are the callers of the tests, by the cookie that names them.
func callers(r *http.Request) (auth.Caller, error) {
	who := "boss"
	if c, err := r.Cookie("who"); err == nil {
		who = c.Value
	}
	if token, err := auth.Bearer(r); err == nil {
		who = token
	}
	switch who {
	case "boss":
		return auth.Caller{Subject: who}, nil
	case "viewer":
		return auth.Caller{Subject: who, Rights: auth.Read}, nil
	case "decider":
		return auth.Caller{Subject: who, Rights: auth.Read | auth.Answer}, nil
	case "mira":
		sessions, err := auth.ParseSessions("{user}:*")
		return auth.Caller{UserID: who, MayUse: sessions.For(who)}, err
	}
	return auth.Caller{Subject: who}, auth.ErrRejected
}

// agentConfig is the agent of the tests. Its services are down.
func agentConfig(brokers []string, change ...func(*agent.Config, *console.Config)) agent.Config {
	services, err := sink.ParseServices("shop:http://127.0.0.1:9") // the port for what is discarded: nothing listens
	if err != nil {
		panic(err)
	}
	pay := tools.New("pay", "Pays.", func(context.Context, map[string]any) (string, error) { return "paid", nil })
	forever := tools.New("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) { <-ctx.Done(); return "", ctx.Err() })
	page := console.Config{}
	c := agent.Config{
		Brokers: brokers, Model: think.Func(play), Tools: []tools.Tool{pay, forever}, Authenticate: callers, Logger: zap.NewNop(),
		Approval: &approval.Policy{Default: approval.Allow, Rules: []approval.Rule{{Tool: "pay", Effect: approval.Ask, Message: "May it pay?", Edit: true}}},
		Costs:    true, Latencies: true, Budgets: turn.Budgets{User: turn.Budget{Total: 100}},
		Deliver: &agent.Deliver{Services: services, Config: delivery.Config{Services: map[string]delivery.Service{"shop": {Attempts: 1}}}},
		Kafka:   []processors.Option{processors.WithPartitions(3), processors.WithReplication(1)},
	}
	for _, ch := range change {
		ch(&c, &page)
	}
	c.Console = page
	return c
}

func newField(t *testing.T, change ...func(*agent.Config, *console.Config)) *field {
	t.Helper()
	f := &field{t: t, addrs: testbroker.Start(t), name: testbroker.AgentOf(t), ended: make(chan struct{})}
	var err error
	f.agent, err = agent.New(f.name, agentConfig(f.addrs, change...))
	require.NoError(t, err)
	f.to, err = processors.NewPublisher(f.addrs)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.to.Close()) })
	f.site = httptest.NewServer(f.agent.Handler())
	t.Cleanup(f.site.Close)
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	go func() {
		defer close(f.ended)
		if err := f.agent.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { stop(); <-f.ended })
	select {
	case <-f.agent.Ready():
	case <-time.After(time.Minute):
		t.Fatal("the agent does not get ready")
	}
	f.as("boss").eventually("/console/", func(p string) bool { return !strings.Contains(p, "still being read") })
	return f
}

// say writes a message of a user.
func (f *field) say(session, text string, reply ...string) {
	f.t.Helper()
	user, role := "mira", "user"
	if len(reply) > 0 {
		out, err := processors.OutboundOf(f.agent.Topics().ReplyTo, session, topics.Route{}, "")
		require.NoError(f.t, err)
		out.Value = []byte(`{"callbackService":"` + reply[0] + `","bearerToken":"t"}`)
		require.NoError(f.t, f.to.Publish(f.t.Context(), out))
	}
	out, err := processors.OutboundOf(f.agent.Topics().MessageInput, session, topics.Message{
		SessionID: &session, UserID: &user, Role: &role, Content: topics.Raw(fmt.Sprintf("%q", text)),
	}, "")
	require.NoError(f.t, err)
	require.NoError(f.t, f.to.Publish(f.t.Context(), out))
}

// visitor is a browser without JavaScript.
type visitor struct {
	f      *field
	client *http.Client
}

func (f *field) as(who string) *visitor {
	jar, _ := cookiejar.New(nil)
	site, _ := url.Parse(f.site.URL)
	jar.SetCookies(site, []*http.Cookie{{Name: "who", Value: who, Path: "/"}})
	return &visitor{f, &http.Client{Jar: jar, Timeout: 30 * time.Second}}
}

func (v *visitor) get(path string) (status int, page string) {
	v.f.t.Helper()
	r, err := v.client.Get(v.f.site.URL + path)
	require.NoError(v.f.t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	require.NoError(v.f.t, err)
	return r.StatusCode, string(body)
}

// page returns a page that must exist.
func (v *visitor) page(path string) string {
	v.f.t.Helper()
	status, page := v.get(path)
	require.Equal(v.f.t, http.StatusOK, status, page)
	return page
}

// eventually returns a page when it is as it should be.
func (v *visitor) eventually(path string, is func(page string) bool) (page string) {
	v.f.t.Helper()
	require.Eventually(v.f.t, func() bool {
		_, page = v.get(path)
		return is(page)
	}, time.Minute, 50*time.Millisecond, "%s stays %s", path, lazy{&page})
	return page
}

type lazy struct{ text *string }

func (l lazy) String() string { return *l.text }

// post sends a form as a page of the console does, and returns where it leads and what is there.
func (v *visitor) post(path string, form url.Values) (status int, at, page string) {
	v.f.t.Helper()
	r, err := http.NewRequestWithContext(v.f.t.Context(), http.MethodPost, v.f.site.URL+path, strings.NewReader(form.Encode()))
	require.NoError(v.f.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	answer, err := v.client.Do(r)
	require.NoError(v.f.t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(v.f.t, err)
	return answer.StatusCode, answer.Request.URL.RequestURI(), string(body)
}

// gateOf returns the address of the open gate of a session, once there is one.
func (f *field) gateOf(session string) (path, id string) {
	f.t.Helper()
	f.as("boss").eventually("/console/gates", func(page string) bool {
		for _, part := range strings.Split(page, `href="/console/gate?`)[1:] {
			query, _, _ := strings.Cut(part, `"`)
			q, err := url.ParseQuery(html.UnescapeString(query))
			if err == nil && q.Get("session") == session {
				path, id = "/console/gate?"+q.Encode(), q.Get("id")
			}
		}
		return id != ""
	})
	return path, id
}

// raw writes a record of another program.
func (f *field) raw(topic, key, value string) {
	f.t.Helper()
	require.NoError(f.t, f.to.Publish(f.t.Context(), processors.Outbound{Topic: topic, Key: key, Value: []byte(value)}))
}
