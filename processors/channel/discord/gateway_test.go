package discord

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/topics"
)

// wait keeps a connection until the bot closes it.
func (p *peer) wait() {
	for p.next().Op != -1 {
	}
}

func TestMessagesOfTheGateway(t *testing.T) {
	v := newVendor(t)
	opened := make(chan frame, 1)
	v.gateway = func(_ int, p *peer) {
		opened <- p.begin()
		p.ready("")
		p.send(0, 2, "MESSAGE_CREATE", written(101, ""))
		p.send(0, 3, "MESSAGE_CREATE", written(102, `,"guild_id":"600","member":{"nick":"Annie","roles":["r1"]},"mentions":[{"id":"42"}],"components":[{"type":99}]`))
		p.wait()
	}
	v.Answer = func(_ int, c call, w http.ResponseWriter) bool {
		if c.Method == http.MethodGet && c.Path == "/channels/702" {
			_, _ = io.WriteString(w, `{"id":"702","type":11,"parent_id":"700"}`)
			return true
		}
		return false
	}
	a, _ := newAdapter(t, v)
	i := platformtest.NewInbox(0)
	platformtest.Start(t, a, i)
	<-i.Came
	<-i.Came
	var got identify
	require.NoError(t, json.Unmarshal((<-opened).Data, &got))
	require.Equal(t, identify{Token: token, Intents: 1<<9 | 1<<12 | 1<<15, Properties: got.Properties}, got)
	at := time.Date(2026, 11, 23, 17, 0, 0, 0, time.UTC)
	all := i.All()
	for n := range all {
		require.True(t, all[n].At.Equal(at))
		all[n].At = time.Time{}
	}
	require.Equal(t, []adapter.Inbound{
		{Event: "101", Text: "m101", Origin: topics.Origin{Channel: "discord", Account: "main", Recipient: "702", MessageID: "101", User: "9", UserName: "Ann"}},
		{Event: "102", Text: "m102", Mentioned: true, Guild: "600", Roles: []string{"r1"}, Origin: topics.Origin{
			Channel: "discord", Account: "main", Recipient: "700", Thread: "702", MessageID: "102", User: "9", UserName: "Annie", Group: true,
		}},
	}, all)
}

func TestWhatNoPersonWroteIsDropped(t *testing.T) {
	v := newVendor(t)
	v.gateway = func(_ int, p *peer) {
		p.begin()
		p.ready("")
		for n, m := range []string{
			strings.Replace(written(1, ""), `"username"`, `"bot":true,"username"`, 1), // a bot
			strings.Replace(written(1, ""), `"id":"9"`, `"id":"42"`, 1),               // the bot itself
			strings.Replace(written(1, ""), `"type":0`, `"type":7`, 1),                // somebody joined
			written(1, `,"webhook_id":"3"`),
			strings.Replace(written(1, ""), `"content":"m1"`, `"content":""`, 1),
			strings.Replace(written(1, ""), `"content":"m1"`, `"content":{}`, 1), // not as documented
			written(2, ""),
		} {
			p.send(0, int64(n)+2, "MESSAGE_CREATE", m)
		}
		p.send(0, 20, "TYPING_START", `{}`)
		p.wait()
	}
	a, _ := newAdapter(t, v)
	i := platformtest.NewInbox(0)
	platformtest.Start(t, a, i)
	<-i.Came
	require.Equal(t, []string{"2"}, i.Events())
}

func TestMentionAndReplyAddressTheBot(t *testing.T) {
	a, _ := newAdapter(t, nil)
	for _, c := range []struct {
		m         message
		text      string
		mentioned bool
	}{
		{message{Content: "<@42>, hello", Mentions: []user{{ID: "42"}}}, "hello", true},
		{message{Content: "<@!42> hello", Mentions: []user{{ID: "42"}}}, "hello", true},
		{message{Content: "hello <@42>", Mentions: []user{{ID: "42"}}}, "hello <@42>", true},
		{message{Content: "hello", Mentions: []user{{ID: "43"}}}, "hello", false},
		{message{Content: "@everyone"}, "@everyone", false},
	} {
		in := a.inbound(c.m, place{channel: "1"}, "42")
		require.Equal(t, c.text, in.Text)
		require.Equal(t, c.mentioned, in.Mentioned, c.m.Content)
	}
	reply := message{Content: "yes"}
	require.NoError(t, json.Unmarshal([]byte(`{"referenced_message":{"author":{"id":"42"}}}`), &reply))
	require.True(t, a.inbound(reply, place{}, "42").Mentioned)
}

func TestLostConnectionIsResumedAfterTheLastHandledEvent(t *testing.T) {
	v := newVendor(t)
	opened := make(chan frame, 10)
	v.gateway = func(n int, p *peer) {
		opened <- p.begin()
		switch n {
		case 1:
			p.ready(strings.Replace(v.URL, "http", "ws", 1) + "/gateway")
			p.send(0, 2, "MESSAGE_CREATE", written(101, ""))
			// The connection is cut.
		case 2:
			p.send(0, 2, "MESSAGE_CREATE", written(101, "")) // replayed, because the cut may have come first
			p.send(0, 3, "MESSAGE_CREATE", written(102, ""))
			p.send(0, 4, "RESUMED", `{}`)
			p.send(opReconnect, 0, "", `null`)
			p.wait()
		case 3:
			p.send(opInvalidSession, 0, "", `false`)
			p.wait()
		case 4:
			p.ready("")
			p.send(0, 2, "MESSAGE_CREATE", written(103, ""))
			_ = p.conn.Close(websocket.StatusCode(4009), "session timed out")
		default:
			p.ready("")
			p.send(0, 2, "MESSAGE_CREATE", written(104, ""))
			p.wait()
		}
	}
	a, _ := newAdapter(t, v)
	i := platformtest.NewInbox(0)
	platformtest.Start(t, a, i)
	for range 5 {
		<-i.Came
	}
	require.Equal(t, []string{"101", "101", "102", "103", "104"}, i.Events())
	var ops []int
	for range 5 {
		f := <-opened
		ops = append(ops, f.Op)
		if len(ops) == 2 || len(ops) == 3 {
			var r resume
			require.NoError(t, json.Unmarshal(f.Data, &r))
			require.Equal(t, resume{Token: token, Session: "session-1", Sequence: int64(2 * (len(ops) - 1))}, r)
		}
	}
	require.Equal(t, []int{opIdentify, opResume, opResume, opIdentify, opIdentify}, ops)
}

func TestEventIsRetriedUntilItIsHandled(t *testing.T) {
	v := newVendor(t)
	v.gateway = func(_ int, p *peer) {
		p.begin()
		p.ready("")
		p.send(0, 2, "MESSAGE_CREATE", written(101, ""))
		p.send(0, 3, "MESSAGE_CREATE", written(102, ""))
		p.wait()
	}
	a, logs := newAdapter(t, v)
	i := platformtest.NewInbox(3)
	platformtest.Start(t, a, i)
	<-i.Came
	<-i.Came
	require.Equal(t, []string{"101", "102"}, i.Events())
	require.Equal(t, 1, int(v.opened.Load()))
	require.Len(t, logs.FilterMessageSnippet("not handled").All(), 3)
	platformtest.Reasons(t, logs, "m101") // texts are not logged
}

func TestUnansweredHeartbeatEndsTheConnection(t *testing.T) {
	v := newVendor(t)
	v.gateway = func(n int, p *peer) {
		if n > 1 {
			p.begin()
			p.wait()
			return
		}
		p.send(opHello, 0, "", `{"heartbeat_interval":10000}`) // 10 ms on the clock of the test
		for {
			if _, _, err := p.conn.Read(t.Context()); err != nil {
				return
			}
		}
	}
	a, logs := newAdapter(t, v)
	stop := platformtest.Start(t, a, platformtest.NewInbox(0))
	require.Eventually(t, func() bool { return int(v.opened.Load()) == 2 }, platformtest.WaitFor, platformtest.Tick)
	stop()
	require.Equal(t, "heartbeat was not answered", logs.All()[0].ContextMap()["reason"])
}

func TestHeartbeatHasTheLastSequence(t *testing.T) {
	v := newVendor(t)
	beats := make(chan string, 1000)
	v.gateway = func(_ int, p *peer) {
		p.begin()
		p.ready("")
		p.send(opDispatch, 7, "TYPING_START", `{}`)
		p.send(opHeartbeat, 0, "", `null`) // asks for one
		for {
			_, raw, err := p.conn.Read(t.Context())
			if err != nil {
				return
			}
			beats <- string(raw)
		}
	}
	a, _ := newAdapter(t, v)
	platformtest.Start(t, a, platformtest.NewInbox(0))
	for beat := range beats {
		if beat == `{"op":1,"d":7}` {
			return
		}
		require.Contains(t, []string{`{"op":1,"d":null}`, `{"op":1,"d":1}`}, beat, "before, and after READY, whose number is 1")
	}
}

// The refusal may come while the bot sends its first heartbeat, which then fails: that is not the reason.
func TestRefusedTokenIsTriedRarely(t *testing.T) {
	for n := range 50 {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			v := newVendor(t)
			v.gateway = func(n int, p *peer) {
				p.begin()
				if n == 1 {
					_ = p.conn.Close(websocket.StatusCode(4004), "Authentication failed.")
				}
				p.wait()
			}
			a, logs := newAdapter(t, v)
			stop := platformtest.Start(t, a, platformtest.NewInbox(0))
			require.Eventually(t, func() bool { return len(logs.All()) == 1 }, platformtest.WaitFor, platformtest.Tick)
			stop()
			fields := logs.All()[0].ContextMap()
			require.Equal(t, "refused by the gateway", fields["reason"])
			require.Equal(t, 10*time.Minute, fields["wait"])
		})
	}
}

func TestHostileGatewayIsLeft(t *testing.T) {
	v := newVendor(t)
	v.gateway = func(n int, p *peer) {
		switch n {
		case 1:
			p.send(opDispatch, 1, "READY", `{}`) // no hello
		case 2:
			p.send(opHello, 0, "", `{"heartbeat_interval":-1}`)
		case 3:
			p.begin()
			p.send(opDispatch, 1, "READY", `{"session_id":""}`)
		case 4:
			p.begin()
			_ = p.conn.Write(t.Context(), websocket.MessageText, []byte(strings.Repeat(" ", maxMessage+1)))
		case 5:
			p.begin()
			_ = p.conn.Write(t.Context(), websocket.MessageText, []byte(`{`))
		default:
			p.begin()
			p.ready("")
			p.send(0, 2, "MESSAGE_CREATE", written(101, ""))
		}
		p.wait()
	}
	a, _ := newAdapter(t, v)
	i := platformtest.NewInbox(0)
	platformtest.Start(t, a, i)
	<-i.Came
	require.Equal(t, 6, int(v.opened.Load()))
}

func TestPressOverTheGatewayIsAcknowledged(t *testing.T) {
	v := newVendor(t)
	v.gateway = func(_ int, p *peer) {
		p.begin()
		p.ready("")
		p.send(0, 2, "INTERACTION_CREATE", press)
		p.wait()
	}
	a, _ := newAdapter(t, v)
	i := platformtest.NewInbox(1)
	platformtest.Start(t, a, i)
	<-i.Came
	require.Eventually(t, func() bool { return len(v.Got()) == 1 }, platformtest.WaitFor, platformtest.Tick)
	require.Equal(t, []call{{Method: "POST", Path: "/interactions/555/t/callback", Params: map[string]any{"type": 6.0}}}, v.Got())
}

func TestRunStopsBetweenConnectionsAndInOne(t *testing.T) {
	v := newVendor(t)
	v.gateway = func(_ int, p *peer) { p.begin(); p.ready(""); p.wait() }
	a, _ := newAdapter(t, v)
	stop := platformtest.Start(t, a, platformtest.NewInbox(0))
	require.Eventually(t, func() bool { return int(v.opened.Load()) == 1 }, platformtest.WaitFor, platformtest.Tick)
	stop()
	away, _ := newAdapter(t, nil, func(c *Config) { c.GatewayURL = "ws://127.0.0.1:1" })
	platformtest.Start(t, away, platformtest.NewInbox(0))()
}
