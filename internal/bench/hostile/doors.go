package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/go-json-experiment/json"
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/slack"
	"github.com/turntable-streams/turntable/processors/crew/crewhttp"
	"github.com/turntable-streams/turntable/processors/delegation/delegationhttp"
	"github.com/turntable-streams/turntable/processors/gate/gatehttp"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/peer/peerhttp"
	"github.com/turntable-streams/turntable/topics"
)

// all are the doors. Those with an index or with replies read them from a broker in the process of the measurement.
var all = []string{"chat", "callback", "invoke", "websocket", "channel", "gate", "delegation", "crew", "peer"}

func needsBroker(door string) bool {
	switch door {
	case "gate", "delegation", "crew", "peer":
		return true
	}
	return false
}

const agent = "pilot"

func catalog() (topics.Catalog, error) {
	return topics.For(agent, topics.WithGates(), topics.WithChannels(), topics.WithCrews(), topics.WithPeers())
}

// createTopics creates what the doors read.
func createTopics(ctx context.Context, brokers []string) error {
	c, err := catalog()
	if err != nil {
		return err
	}
	if err := topics.EnsureCluster(ctx, brokers, kafka.Config(), c); err != nil {
		return err
	}
	admin, err := sarama.NewClusterAdmin(brokers, kafka.Config())
	if err != nil {
		return err
	}
	defer func() { _ = admin.Close() }() // it has created what it should
	for _, g := range c.Groups() {
		err := admin.CreateTopic(string(goka.GroupTable(g)), &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false)
		if err != nil && !errors.Is(err, sarama.ErrTopicAlreadyExists) {
			return err
		}
	}
	return nil
}

// follower is what a door reads.
type follower interface {
	Run(ctx context.Context, brokers []string, opts ...processors.Option) error
	Ready() <-chan struct{}
}

// ready starts a follower and returns when it has read the topics.
func ready(f follower, brokers []string) error {
	ran := make(chan error, 1)
	go func() { ran <- f.Run(context.Background(), brokers) }()
	select {
	case <-f.Ready():
		return nil
	case err := <-ran:
		return err
	case <-time.After(time.Minute):
		return fmt.Errorf("the topics at %s were not read in a minute", brokers)
	}
}

// channelDoor returns the door of Slack, whose requests are signed.
func channelDoor() (http.Handler, error) {
	a, err := slack.New(slack.Config{Account: "desk", Token: "xoxb-token", SigningSecrets: []string{os.Getenv(secretVariable)}})
	if err != nil {
		return nil, err
	}
	return a.Handler(adapter.ReceiverFunc(func(context.Context, adapter.Inbound) error {
		time.Sleep(acknowledgement)
		return nil
	})), nil
}

// identified is what doors have in common that do not know their clients by tokens of their own.
var identified = auth.Door{Authenticate: identify}

// followingDoor returns a door that reads topics.
func followingDoor(name string, brokers []string) (http.Handler, error) {
	switch name {
	case "gate":
		index, err := gatehttp.NewIndex(agent, gatehttp.Config{})
		if err == nil {
			err = ready(index, brokers)
		}
		if err != nil {
			return nil, err
		}
		return gatehttp.New(index, acknowledging{}, gatehttp.Config{Door: identified})
	case "delegation":
		index, err := delegationhttp.NewIndex(agent, delegationhttp.Config{})
		if err == nil {
			err = ready(index, brokers)
		}
		if err != nil {
			return nil, err
		}
		return delegationhttp.New(index, delegationhttp.Config{Door: identified})
	case "crew":
		index, err := crewhttp.NewIndex(agent, crewhttp.Config{})
		if err == nil {
			err = ready(index, brokers)
		}
		if err != nil {
			return nil, err
		}
		return crewhttp.New(index, acknowledging{}, crewhttp.Config{Door: identified})
	}
	return peersDoor(brokers)
}

// peersDoor returns the door of peers. Honest and hostile ones have tokens; each may run one task.
func peersDoor(brokers []string) (http.Handler, error) {
	type token struct {
		ID            string `json:"id"`
		Token         string `json:"token"`
		MaxConcurrent int    `json:"maxConcurrent"`
	}
	var tokens []token
	for n := range 10 {
		tokens = append(tokens, token{ID: mallory(n), Token: mallory(n), MaxConcurrent: 1})
	}
	for n := range peer.MaxConcurrent - len(tokens) {
		name := fmt.Sprintf("honest-%d", n)
		tokens = append(tokens, token{ID: name, Token: name, MaxConcurrent: 1})
	}
	raw, err := json.Marshal(map[string]any{"peers": map[string]any{
		"enabled": true, "instanceId": agent, "inboundTokens": tokens, "inboundMaxConcurrent": peer.MaxConcurrent,
	}})
	if err != nil {
		return nil, err
	}
	s, err := peer.ParseSettings(raw, func(string) (string, bool) { return "", false })
	if err != nil {
		return nil, err
	}
	replies, err := peerhttp.NewReplies(agent, peerhttp.Config{})
	if err == nil {
		err = ready(replies, brokers)
	}
	if err != nil {
		return nil, err
	}
	c, err := catalog()
	if err != nil {
		return nil, err
	}
	to, err := processors.NewPublisher(brokers)
	if err != nil {
		return nil, err
	}
	return peerhttp.New(replies, peers{c, to}, func() *peer.Settings { return s }, peerhttp.Config{})
}

// peers is the group of tasks: each ends when it has begun.
type peers struct {
	catalog topics.Catalog
	replies processors.Publisher
}

func (p peers) Publish(ctx context.Context, records ...processors.Outbound) error {
	time.Sleep(acknowledgement)
	for _, r := range records {
		if r.Topic != p.catalog.PeerCommands.Name() {
			continue
		}
		in := p.catalog.PeerCommands.Codec().Unmarshal(r.Value)
		if in.Err != nil || in.Value.Kind != topics.PeerRun {
			continue
		}
		body := fmt.Sprintf(`{"taskId":%q,"peerInstanceId":%q,"status":"success","result":"42 rows"}`, in.Value.TaskID, agent)
		out, err := processors.OutboundOf(p.catalog.PeerReplies, r.Key, topics.PeerReply{
			TaskID: in.Value.TaskID, InboundID: in.Value.InboundID, State: topics.PeerDone, Hash: in.Value.Hash, Body: topics.Raw(body),
		}, "")
		if err == nil {
			err = p.replies.Publish(ctx, out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pathOf is the path to which hostile clients post. It reads a body if the door reads any.
func pathOf(door string) string {
	switch door {
	case "chat":
		return "/api/chat"
	case "callback":
		return "/api/tools/response"
	case "gate":
		return gatehttp.GatesPath + "/none/decision"
	case "delegation":
		return delegationhttp.DelegationsPath
	case "crew":
		return "/api/agents"
	case "peer":
		return peerhttp.DelegatePath
	}
	return "/"
}

// listOf is the path of a list that honest clients of a door read, empty for doors to which they post.
func listOf(door, session string) string {
	switch door {
	case "gate":
		return gatehttp.GatesPath + "?session_id=" + session
	case "delegation":
		return delegationhttp.DelegationsPath + "?session_id=" + session
	case "crew":
		return "/api/agents"
	}
	return ""
}

// requests numbers the events and tasks of honest clients, which are not repeated.
var requests atomic.Int64

// bodyOf is the body of an honest client's request, and its headers.
func bodyOf(door, name, secret string) (body string, headers map[string]string) {
	switch n := requests.Add(1); door {
	case "channel":
		body = fmt.Sprintf(`{"type":"event_callback","team_id":"T1","event_id":"Ev%d","event":{"type":"message","channel":"D-%s",`+
			`"channel_type":"im","user":"U1","text":"Which berth is free?","ts":"17.%d"}}`, n, name, n)
		return body, signed(secret, body)
	case "peer":
		return fmt.Sprintf(`{"taskId":"t-%d","parentInstanceId":"hq-1","content":"How many rows?"}`, n), nil
	}
	return `{"session_id":"` + name + `","content":"Which berth is free?","data":{"inputs":{"messages":[{"role":"user","content":"?"}]}}}`, nil
}

// brokersOf returns the brokers in a flag.
func brokersOf(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}
