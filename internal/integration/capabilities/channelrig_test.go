package capabilities

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/channel/slack"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/topics"
)

// post is a request to the method chat.postMessage (https://docs.slack.dev/reference/methods/chat.postMessage).
type post struct{ token, channel, thread, text, metadata string }

// platform plays Slack.
type platform struct {
	// answer answers the n-th request from 1. It returns false if Slack accepts the message.
	answer func(w http.ResponseWriter, p post, n int) bool

	mu              sync.Mutex
	asked, accepted []post
}

func (p *platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token == "" {
		token = r.PostFormValue("token")
	}
	got := post{token, r.PostFormValue("channel"), r.PostFormValue("thread_ts"), r.PostFormValue("text"), r.PostFormValue("metadata")}
	p.mu.Lock()
	p.asked = append(p.asked, got)
	n, answer := len(p.asked), p.answer
	p.mu.Unlock()
	if r.URL.Path != "/chat.postMessage" || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if answer != nil && answer(w, got, n) {
		return
	}
	p.mu.Lock()
	p.accepted = append(p.accepted, got)
	n = len(p.accepted)
	p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"ok":true,"channel":"C1","ts":"` + strconv.Itoa(n) + `.000"}`))
}

// texts returns the first words of the accepted messages.
func (p *platform) texts() (words []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.accepted {
		words = append(words, strings.Fields(m.text)[0])
	}
	return words
}

// requests returns the requests whose text begins with a word.
func (p *platform) requests(word string) (found []post) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.asked {
		if strings.HasPrefix(m.text, word+" ") || m.text == word {
			found = append(found, m)
		}
	}
	return found
}

// channelRig runs the deliveries of an agent to the accounts main and other of Slack, without a sink.
type channelRig struct {
	*world
	to          *processors.KafkaPublisher
	live        atomic.Pointer[channel.Settings]
	main, other *platform
	accounts    []channel.AccountAdapter

	receipts []topics.Receipt
}

func newChannelRig(t *testing.T) *channelRig {
	t.Helper()
	w := newWorld(t, processors.AtLeastOnce, 2, topics.WithDeliveries(), topics.WithChannels())
	f := &channelRig{world: w, to: w.publisher(), main: &platform{}, other: &platform{}}
	f.configure("main", "other")
	for name, p := range map[string]*platform{"main": f.main, "other": f.other} {
		server := httptest.NewServer(p)
		t.Cleanup(server.Close)
		a, err := slack.New(slack.Config{
			Account: name, Token: "xoxb-" + name, SigningSecrets: []string{"not-used-in-this-direction"}, URL: server.URL, TeamID: "T1",
		})
		require.NoError(t, err)
		t.Cleanup(a.Close)
		f.accounts = append(f.accounts, channel.AccountAdapter{Name: name, Adapter: a})
	}
	quick := delivery.Service{Initial: 10 * time.Millisecond, Longest: 100 * time.Millisecond}
	for name, graph := range map[string]func(string, delivery.Config) (*goka.GroupGraph, error){
		"routes": delivery.RoutesGraph, "delivery": delivery.Graph,
	} {
		g, err := graph(f.agent, delivery.Config{
			Channels: true, Services: map[string]delivery.Service{"slack/main": quick, "slack/other": quick},
		})
		require.NoError(t, err)
		f.group(g, name)
	}
	f.read(func(r *kgo.Record) {
		f.receipts = append(f.receipts, decode(f.world, f.topics.DeliveryReceipts, r))
	}, f.topics.DeliveryReceipts.Name())
	return f
}

// configure puts settings with these accounts of Slack in force.
func (f *channelRig) configure(accounts ...string) {
	s := &channel.Settings{}
	for _, name := range accounts {
		s.Accounts = append(s.Accounts, channel.Account{Channel: slack.Channel, Name: name})
	}
	f.live.Store(s)
}

// sink starts a sink with a transport of its own, like another process.
func (f *channelRig) sink(c sink.Config) (stop func()) {
	f.tb.Helper()
	tr, err := channel.NewTransport(f.agent, f.live.Load, f.accounts, channel.TransportConfig{})
	require.NoError(f.tb, err)
	c.Transports = map[string]sink.Transport{channel.Kind: tr}
	s, err := sink.New(f.agent, f.to, c)
	require.NoError(f.tb, err)
	return f.start(func(ctx context.Context) error { return s.Run(ctx, f.brokers) })
}

// output writes the output of a turn of a room's session, and returns its session.
func (f *channelRig) output(account, room, turn, text string) string {
	f.tb.Helper()
	o := topics.Origin{Channel: slack.Channel, Account: account, Recipient: room, Thread: "17.1", MessageID: "17.2", User: "U1", Group: true}
	session := o.Session(f.agent)
	out, err := processors.OutboundOf(f.topics.MessageOutput, session, topics.Output{
		SessionID: &session, Content: text, ReplyTo: topics.OriginRoute(topics.EncodeOrigin(o), nil),
	}, turn+"/0/output/0")
	require.NoError(f.tb, err)
	require.NoError(f.tb, f.to.Publish(context.Background(), out))
	return session
}

// finals waits for n final receipts and returns them in order.
func (f *channelRig) finals(n int) (finals []topics.Receipt) {
	f.tb.Helper()
	require.Eventually(f.tb, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		finals = nil
		for _, r := range f.receipts {
			if r.Final {
				finals = append(finals, r)
			}
		}
		return len(finals) >= n
	}, waitLimit, 5*time.Millisecond)
	require.Len(f.tb, finals, n)
	return finals
}

// report reads what a final receipt says of the messages of the platform.
func report(t *testing.T, r topics.Receipt) channel.Report {
	t.Helper()
	got, ok := channel.ReadReport(r.Response)
	require.True(t, ok, "%s", r.Response)
	return got
}

// long returns a text of five messages of Slack, which begin with one, two, three, four and five.
func long() string {
	var paragraphs []string
	for _, word := range numbers {
		paragraphs = append(paragraphs, word+strings.Repeat(" word", 500))
	}
	return strings.Join(paragraphs, "\n\n")
}

var numbers = []string{"one", "two", "three", "four", "five"}
