package mattermost

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/topics"
)

const (
	// maxMessage is the longest message of the WebSocket, in bytes.
	maxMessage = 1 << 20
	keepAlive  = 30 * time.Second
)

// event is a message of the WebSocket (https://developers.mattermost.com/api-documentation/#websocket): an event, or the reply to
// the authentication.
type event struct {
	Event    string         `json:"event"`
	Data     jsontext.Value `json:"data"`
	Sequence int64          `json:"seq"`
	Status   string         `json:"status"`
	ReplyTo  int64          `json:"seq_reply"`
}

// posted is the data of the event of a new post. Post and Mentions are texts that contain JSON.
type posted struct {
	ChannelType string `json:"channel_type"` // D for a direct message
	Post        string `json:"post"`
	SenderName  string `json:"sender_name"`
	Team        string `json:"team_id"`
	Mentions    string `json:"mentions"`
}

// post is https://developers.mattermost.com/api-documentation/#/schemas/Post.
type post struct {
	ID       string         `json:"id"`
	CreateAt int64          `json:"create_at"` // in milliseconds
	User     string         `json:"user_id"`
	Channel  string         `json:"channel_id"`
	Root     string         `json:"root_id"`
	Message  string         `json:"message"`
	Type     string         `json:"type"` // empty for what a person wrote
	Props    map[string]any `json:"props"`
}

// link is what Run keeps between connections, so that Mattermost sends again what was not received.
type link struct {
	connection string
	next       int64 // the first event that was not handled
}

// Run passes the posts in the bot's channels to a receiver, in order, until ctx ends; it then returns nil. It retries a post for
// which the receiver returns an error. When the connection is lost it connects again, and Mattermost sends the posts of the
// meantime if it still has them, which is for a short time. It waits from one second to one minute before either. Run must be
// running only once per bot.
func (a *Adapter) Run(ctx context.Context, to adapter.Receiver) error {
	l := &link{}
	return platform.Reconnect(ctx, a.config.Clock, a.config.Logger, func(ctx context.Context) (bool, error) {
		return a.connection(ctx, l, to)
	})
}

func (a *Adapter) connection(ctx context.Context, l *link, to adapter.Receiver) (progress bool, err error) {
	bot, err := a.me(ctx)
	if err != nil {
		return false, err
	}
	query := url.Values{"connection_id": {l.connection}, "sequence_number": {strconv.FormatInt(l.next, 10)}}
	conn, err := platform.Dial(ctx, "ws"+strings.TrimPrefix(a.api, "http")+"/websocket?"+query.Encode(), nil, maxMessage)
	if err != nil {
		return false, err
	}
	defer conn.Close(0)
	if err := conn.Write(ctx, map[string]any{
		"seq": 1, "action": "authentication_challenge", "data": map[string]string{"token": a.config.Token},
	}); err != nil {
		return false, err
	}
	alive := func(ctx context.Context) error { return conn.KeepAlive(ctx, a.config.Clock, keepAlive) }
	take := func(_ context.Context, e event) (bool, error) {
		if e.ReplyTo == 1 && e.Status != "OK" {
			return false, &adapter.Failure{Reason: "token was refused", Status: http.StatusUnauthorized}
		}
		return e.Event != "", nil
	}
	err = platform.Stream(ctx, conn, alive, take, func(e event) error {
		err := a.handle(ctx, e, l, bot, to)
		progress = progress || err == nil
		return err
	})
	return progress, err
}

// me returns the bot's user ID.
func (a *Adapter) me(ctx context.Context) (string, error) {
	answer, err := a.call(ctx, http.MethodGet, "/users/me", nil)
	id := answer.ID()
	if err == nil && id == "" {
		err = &adapter.Failure{Reason: "response cannot be read"}
	}
	return id, err
}

// handle handles an event, and tries again until ctx ends. An event that cannot be read is skipped.
func (a *Adapter) handle(ctx context.Context, e event, l *link, bot string, to adapter.Receiver) error {
	switch e.Event {
	case "hello":
		var h struct {
			Connection string `json:"connection_id"`
		}
		_ = platform.Decode(e.Data, &h) // older servers name no connection
		if h.Connection != l.connection {
			l.connection, l.next = h.Connection, 0 // a new one
		}
	case "posted":
		in, ok := a.posted(e, bot)
		if !ok {
			break
		}
		if err := platform.Persist(ctx, a.config.Clock, func() error {
			err := to.Receive(ctx, in)
			if err != nil {
				a.config.Logger.Warn("mattermost: post was not handled; it is tried again after a wait", zap.String("post", adapter.Code(in.Event)))
			}
			return err
		}); err != nil {
			return err
		}
	}
	l.next = max(l.next, e.Sequence+1)
	return nil
}

func (a *Adapter) posted(e event, bot string) (adapter.Inbound, bool) {
	var d posted
	var p post
	if platform.Decode(e.Data, &d) != nil || platform.Decode([]byte(d.Post), &p) != nil || p.ID == "" || p.Channel == "" {
		a.config.Logger.Warn("mattermost: event cannot be read; it is skipped", zap.Int64("sequence", e.Sequence))
		return adapter.Inbound{}, false
	}
	if p.User == bot || p.User == "" || p.Type != "" || p.Message == "" || isTrue(p.Props["from_bot"]) || isTrue(p.Props["from_webhook"]) {
		return adapter.Inbound{}, false
	}
	var mentions []string
	_ = platform.Decode([]byte(d.Mentions), &mentions) // absent if there are none
	return adapter.Inbound{
		Event: p.ID, At: platform.Time(p.CreateAt), Guild: d.Team, Text: a.withoutMention(p.Message), Mentioned: slices.Contains(mentions, bot),
		Origin: topics.Origin{
			Channel: Channel, Account: a.config.Account, Recipient: p.Channel, Thread: p.Root, MessageID: p.ID, User: p.User,
			UserName: platform.DisplayName(strings.TrimPrefix(d.SenderName, "@")), Group: d.ChannelType != "D",
		},
	}, true
}

func isTrue(v any) bool { return v == true || v == "true" }
