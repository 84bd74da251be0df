package mattermost

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/topics"
)

func TestPostsOfTheSocket(t *testing.T) {
	v := newVendor(t)
	v.play = func(_ int, p *peer) {
		p.hello("c1")
		p.message(1, "p1", "post.root_id", "root1", "post.message", "@turntable hello", "data.mentions", `["bot1","bob1"]`)
		p.message(2, "p2", "data.channel_type", "D", "post.message", "@turntables hello")
		p.wait()
	}
	a, _ := newAdapter(t, v.URL)
	i := platformtest.NewInbox(0)
	platformtest.Start(t, a, i)
	<-i.Came
	<-i.Came
	at := time.UnixMilli(1_700_000_000_000).UTC()
	require.Equal(t, []adapter.Inbound{
		{Event: "p1", Guild: "team1", Text: "hello", Mentioned: true, At: at, Origin: topics.Origin{
			Channel: "mattermost", Account: "main", Recipient: "chan1", Thread: "root1", MessageID: "p1", User: "ann1", UserName: "ann", Group: true,
		}},
		{Event: "p2", Guild: "team1", Text: "@turntables hello", At: at, Origin: topics.Origin{
			Channel: "mattermost", Account: "main", Recipient: "chan1", MessageID: "p2", User: "ann1", UserName: "ann",
		}},
	}, i.All())
}

func TestWhatNoPersonWroteIsDropped(t *testing.T) {
	v := newVendor(t)
	v.play = func(_ int, p *peer) {
		p.hello("c1")
		p.message(1, "p1", "post.user_id", "bot1")
		p.message(2, "p2", "post.type", "system_join_channel")
		p.message(3, "p3", "prop.from_bot", "true")
		p.message(4, "p4", "prop.from_webhook", "true")
		p.message(5, "p5", "post.message", "")
		p.send(`{"event":"posted","data":{"post":"{"},"seq":6}`)
		p.send(`{"event":"posted","data":7,"seq":7}`)
		p.send(`{"event":"typing","data":{},"seq":8}`)
		p.message(9, "p9")
		p.wait()
	}
	a, _ := newAdapter(t, v.URL)
	i := platformtest.NewInbox(0)
	platformtest.Start(t, a, i)
	<-i.Came
	require.Equal(t, []string{"p9"}, i.Events())
}

func TestLostConnectionGoesOnAfterTheLastHandledEvent(t *testing.T) {
	v := newVendor(t)
	v.play = func(n int, p *peer) {
		switch n {
		case 1:
			p.hello("c1")
			p.message(1, "p1")
			p.message(2, "p2") // and the connection is cut
		case 2:
			p.send(`{"status":"OK","seq_reply":1}`)
			p.send(`{"event":"hello","data":{"connection_id":"c1"},"seq":3}`)
			p.message(4, "p3")
		case 3:
			p.hello("c2") // the server has restarted
			p.message(1, "p4")
			p.send(strings.Repeat(" ", maxMessage+1))
		default:
			p.send(`{`)
		}
		if n > 3 {
			p.wait()
		}
	}
	a, _ := newAdapter(t, v.URL)
	i := platformtest.NewInbox(2)
	platformtest.Start(t, a, i)
	for range 4 {
		<-i.Came
	}
	require.Eventually(t, func() bool { return len(v.connections()) >= 4 }, platformtest.WaitFor, platformtest.Tick)
	require.Equal(t, []string{"p1", "p2", "p3", "p4"}, i.Events())
	require.Equal(t, []string{
		"connection_id=&sequence_number=0", "connection_id=c1&sequence_number=3",
		"connection_id=c1&sequence_number=5", "connection_id=c2&sequence_number=2",
	}, v.connections()[:4])
}

func TestRefusedTokenIsTriedAgain(t *testing.T) {
	v := newVendor(t)
	v.play = func(n int, p *peer) {
		if n == 1 {
			p.send(`{"status":"FAIL","seq_reply":1,"error":{"id":"api.web_socket_router.not_authenticated.app_error"}}`)
			p.wait()
			return
		}
		p.hello("c1")
		p.message(1, "p1")
		p.wait()
	}
	a, logs := newAdapter(t, v.URL)
	i := platformtest.NewInbox(1)
	platformtest.Start(t, a, i)
	<-i.Came
	require.Equal(t, "token was refused", logs.All()[0].ContextMap()["reason"])
	wrong, logs := newAdapter(t, v.URL, func(c *Config) { c.Token = "another-s3cret" })
	stop := platformtest.Start(t, wrong, platformtest.NewInbox(0))
	require.Eventually(t, func() bool { return len(logs.All()) > 1 }, platformtest.WaitFor, platformtest.Tick)
	stop()
	for _, e := range logs.All() {
		require.NotContains(t, fmt.Sprint(e), "s3cret")
		require.Equal(t, "status 401, api.context.session_expired.app_error", e.ContextMap()["reason"])
	}
}

func TestRunStopsInAConnection(t *testing.T) {
	v := newVendor(t)
	v.play = func(_ int, p *peer) { p.hello("c1"); p.wait() }
	a, _ := newAdapter(t, v.URL)
	stop := platformtest.Start(t, a, platformtest.NewInbox(0))
	require.Eventually(t, func() bool { return len(v.connections()) == 1 }, platformtest.WaitFor, platformtest.Tick)
	stop()
}
