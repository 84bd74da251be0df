package discord

import (
	"context"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

// The opcodes of the gateway (https://discord.com/developers/docs/topics/opcodes-and-status-codes#gateway-gateway-opcodes).
const (
	opDispatch       = 0
	opHeartbeat      = 1
	opIdentify       = 2
	opResume         = 6
	opReconnect      = 7
	opInvalidSession = 9
	opHello          = 10
	opHeartbeatAck   = 11
)

const (
	// intents are the events that the bot asks for (https://discord.com/developers/docs/topics/gateway#gateway-intents). The
	// content of messages is a privileged intent, which is enabled in the settings of the application.
	intents = discordgo.IntentGuildMessages | discordgo.IntentDirectMessages | discordgo.IntentMessageContent
	// maxMessage is the longest message of the gateway, in bytes.
	maxMessage = 4 << 20
	// afterRefusal is the wait after a refused token or intent: a bot may identify 1000 times a day, after which Discord resets its
	// token.
	afterRefusal = 10 * time.Minute
)

// frame is https://discord.com/developers/docs/topics/gateway-events#payload-structure.
type frame struct {
	Op       int            `json:"op"`
	Data     jsontext.Value `json:"d,omitzero"`
	Sequence int64          `json:"s,omitzero"`
	Event    string         `json:"t,omitzero"`
}

type identify struct {
	Token      string            `json:"token"`
	Intents    int               `json:"intents"`
	Properties map[string]string `json:"properties"`
}

type resume struct {
	Token    string `json:"token"`
	Session  string `json:"session_id"`
	Sequence int64  `json:"seq"`
}

// resumable is what Run keeps between connections.
type resumable struct {
	id  string // of the session; empty if a new one has to be started
	url *url.URL
	bot string // the bot's user ID
	// handled is the sequence number of the last event that needs no more work.
	handled int64
}

// Run passes the messages and pressed buttons of the gateway to a receiver, in order, until ctx ends; it then returns nil. It
// retries an event for which the receiver returns an error. When the connection is lost it connects again and resumes the session
// after the last handled event. It waits from one second to one minute before either. Discord keeps a session for a few minutes and replays none to a bot that has stopped:
// messages of a longer pause are not received. Run must be running only once per bot.
func (a *Adapter) Run(ctx context.Context, to adapter.Receiver) error {
	r := &resumable{}
	return platform.Reconnect(ctx, a.config.Clock, a.config.Logger, func(ctx context.Context) (bool, error) {
		return a.connection(ctx, r, to)
	})
}

// connection is one connection to the gateway (https://discord.com/developers/docs/topics/gateway#connections).
func (a *Adapter) connection(ctx context.Context, r *resumable, to adapter.Receiver) (progress bool, err error) {
	address := *a.gateway
	if r.id != "" && r.url != nil {
		address = *r.url
	}
	address.RawQuery = "v=" + discordgo.APIVersion + "&encoding=json"
	conn, err := platform.Dial(ctx, address.String(), nil, maxMessage)
	if err != nil {
		r.url = nil // the address of the session may be gone
		return false, err
	}
	defer conn.Close(0) // without a close code the session can be resumed
	interval, err := hello(ctx, conn)
	if err != nil {
		return false, err
	}
	if err := a.open(ctx, conn, r); err != nil {
		return false, err
	}
	live := &connected{conn: conn, clock: a.config.Clock, interval: interval}
	live.received.Store(r.handled)
	err = platform.Stream(ctx, conn, live.beats, live.take, func(f frame) error {
		if err := a.handle(ctx, f, r, to); err != nil {
			return err
		}
		progress = progress || f.Event != "READY"
		r.handled = max(r.handled, f.Sequence)
		return nil
	})
	if err = live.closed(err); live.over {
		*r = resumable{bot: r.bot}
	}
	return progress, err
}

// connected is a connection whose session was opened.
type connected struct {
	conn     *platform.Conn
	clock    clock.Clock
	interval time.Duration // of heartbeats
	received atomic.Int64  // the sequence number of the last event
	acked    atomic.Bool   // whether the last heartbeat was answered
	over     bool          // the session cannot be resumed
}

// beats sends heartbeats until ctx ends. A connection on which one is not answered before the next is lost.
func (c *connected) beats(ctx context.Context) error {
	for c.acked.Store(true); c.acked.Load(); {
		c.acked.Store(false)
		c.beat(ctx)
		if !clock.Sleep(ctx, c.clock, c.interval) {
			return ctx.Err()
		}
	}
	return &adapter.Failure{Reason: "heartbeat was not answered"}
}

// beat sends a heartbeat. A connection that cannot be written is over, and what is read from it says why, so the failure of the
// write is not the reason: the token may have been refused.
func (c *connected) beat(ctx context.Context) {
	beat := struct {
		Op       int    `json:"op"`
		Sequence *int64 `json:"d"`
	}{Op: opHeartbeat}
	if n := c.received.Load(); n > 0 {
		beat.Sequence = &n
	}
	_ = c.conn.Write(ctx, beat)
}

// take reports whether a message is an event, and does what the others ask for.
func (c *connected) take(ctx context.Context, f frame) (event bool, err error) {
	switch f.Op {
	case opDispatch:
		c.received.Store(f.Sequence)
		return true, nil
	case opHeartbeat:
		c.beat(ctx)
	case opHeartbeatAck:
		c.acked.Store(true)
	case opReconnect:
		return false, &adapter.Failure{Reason: "the gateway asked to reconnect"}
	case opInvalidSession:
		c.over = string(f.Data) != "true"
		return false, &adapter.Failure{Reason: "session is invalid"}
	}
	return false, nil
}

// closed returns the failure of a connection that was closed
// (https://discord.com/developers/docs/topics/opcodes-and-status-codes#gateway-gateway-close-event-codes).
func (c *connected) closed(err error) error {
	switch code := platform.CloseCode(err); code {
	case 1000, 1001, 4003, 4007, 4009:
		c.over = true
	case 4004, 4010, 4011, 4012, 4013, 4014: // wrong token or shard, or intents that are not enabled
		c.over = true
		return &adapter.Failure{Reason: "refused by the gateway", Status: code, RetryAfter: afterRefusal}
	}
	return err
}

// hello reads the first message and returns the interval of heartbeats.
func hello(ctx context.Context, conn *platform.Conn) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, helloWithin)
	defer cancel()
	var f frame
	if err := conn.Read(ctx, &f); err != nil {
		return 0, err
	}
	var h struct {
		Interval int64 `json:"heartbeat_interval"`
	}
	if f.Op != opHello || platform.Decode(f.Data, &h) != nil || h.Interval <= 0 || h.Interval > int64(time.Hour/time.Millisecond) {
		return 0, &adapter.Failure{Reason: "first message is not as documented"}
	}
	return time.Duration(h.Interval) * time.Millisecond, nil
}

const helloWithin = 30 * time.Second

// open starts a session or resumes the last one.
func (a *Adapter) open(ctx context.Context, conn *platform.Conn, r *resumable) error {
	if r.id != "" {
		return conn.Write(ctx, struct {
			Op   int    `json:"op"`
			Data resume `json:"d"`
		}{opResume, resume{Token: a.config.Token, Session: r.id, Sequence: r.handled}})
	}
	return conn.Write(ctx, struct {
		Op   int      `json:"op"`
		Data identify `json:"d"`
	}{opIdentify, identify{Token: a.config.Token, Intents: int(intents), Properties: map[string]string{
		"os": "linux", "browser": "turntable", "device": "turntable",
	}}})
}

// resumeAt returns the address at which a session is resumed. It is used only if it is of the configured host, or of the domain
// discord.gg if the gateway is Discord's: the token is sent to it.
func (a *Adapter) resumeAt(text string) *url.URL {
	u, err := platform.SocketURL(strings.TrimRight(text, "/"))
	if err != nil || u.Scheme != a.gateway.Scheme {
		return nil
	}
	if u.Host == a.gateway.Host || a.config.GatewayURL == defaultGatewayURL && strings.HasSuffix(u.Host, ".discord.gg") {
		return u
	}
	return nil
}
