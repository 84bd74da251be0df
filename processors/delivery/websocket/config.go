package websocket

import (
	"bytes"
	"errors"
	"path"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/internal/socket"
)

// ErrConfig is wrapped by the errors of New and Run about an invalid agent name, configuration or connection setting.
var ErrConfig = errors.New("websocket: invalid configuration")

// Config configures New. Fields that are zero have their defaults.
type Config struct {
	// Door is the configuration of connections, which have no bodies. Callers need the right auth.Read. A connection is closed with
	// StatusCredentialExpired when its credential expires or is revoked. A client that subscribes to a session that its caller may not
	// use receives a "refused" frame. The caller's UserID is not used.
	//
	// Origins are patterns of path.Match for host or scheme://host, "*" for all, in addition to the server's own host. Concurrency is
	// how many clients may be connected (default 10,000); others get status 503. Limits has 1000 sockets, 100 new ones per second and a
	// burst of 1000 per caller, and 100 sockets, 20 subscriptions per second and a burst of 200 per session by default. A connection
	// over a limit of the caller gets 429, and a subscription over a limit of the session a "refused" frame.
	auth.Door
	// QueueFrames and QueueBytes are how many frames and bytes may be queued for a client that reads slowly (default 256 and 8 MiB, at
	// least 1). A client that exceeds either is disconnected with status 1013.
	QueueFrames, QueueBytes int
	// FrameLimit is the largest frame of a client in bytes (default 4 KiB, at least 1). A client that sends a larger one is
	// disconnected with status 1009.
	FrameLimit int64
	// PingInterval is how often clients are pinged (default 30 s), PongTimeout how long they may take to answer (default 10 s), and
	// WriteTimeout how long the write of a frame may take (default 10 s), all at least 1 ms. A client that exceeds a limit is
	// disconnected. They do not use Clock.
	PingInterval, PongTimeout, WriteTimeout time.Duration
	// Replay limits what clients that resume can receive.
	Replay Replay
	// ResumeKeys are the keys with which event IDs are signed, each of at least 32 random bytes (default: a random key of this server).
	// The first key signs; event IDs that any of them has signed are accepted, so that a key can be replaced without refusing the
	// clients that hold older IDs. Give all servers of an agent the same keys: a client cannot resume by an event ID of a server with
	// other keys, and receives "complete":false instead.
	ResumeKeys [][]byte
	// Gates also shows clients the gates of their session, what waits for a person's decision: a gate_opened frame for each open gate
	// after a subscription and for each new one, and a gate_closed frame for each that has ended (default: none). They have no event_id
	// and are not resumed: a client that subscribes should forget the gates that it knows.
	Gates Gates
	// Operators allows operators: clients that subscribe to the session "*" and receive the frames of all sessions (default: none; such
	// a subscription is refused). An operator's caller has the rights auth.Read and auth.Control, its sessions contain every ID, and
	// Operators returns true for it. It must deny a caller whose MayUse excludes only some sessions. It is called for each such
	// subscription, by several goroutines, and may block. It requires Authenticate.
	//
	// Operators receive the new frames of all sessions, without their gates. A subscription to "*" cannot be resumed; an event_id is
	// that of the frame's session. An operator that reads too slowly is disconnected like any client.
	Operators func(auth.Caller) bool
	// EverySessionToEveryone sends each pipeline_event to all clients, whatever they have subscribed to, and the chat_response of a
	// session without subscribers to all clients, as FlightDeck does (default: only the subscribers of a session receive its frames).
	// Every client can then read every session: use it in trusted networks only. New logs a warning. It excludes Authenticate.
	EverySessionToEveryone bool
}

// Replay limits what clients that resume can receive. Zero fields have their defaults.
type Replay struct {
	// Frames and Bytes limit the frames of one session in memory, and the records of one read from the topics (default 256
	// and 1 MiB).
	Frames, Bytes int
	// Sessions limits the sessions in memory that have no clients (default 1000). TotalBytes limits the frames of all
	// sessions in memory (default 64 MiB). At a limit, the caller whose sessions use the most loses its oldest.
	Sessions, TotalBytes int
	// MaxAge limits the age of the last frame that a client received, if its missed frames are read from the topics (default
	// 15 minutes).
	MaxAge time.Duration
}

// queue is what may be queued for a client.
func (c *Config) queue() socket.Limits {
	return socket.Limits{Frames: c.QueueFrames, Bytes: c.QueueBytes}
}

func (c *Config) complete(check *bounds.Check) {
	bounds.AtLeast(check, "Concurrency", &c.Concurrency, 10_000, 1)
	entrance.Complete(check, &c.Door)
	for _, p := range c.Origins {
		if _, err := path.Match(p, ""); err != nil {
			check.Wrong("Origins", "has %q, want a pattern", p)
		}
	}
	bounds.AtLeast(check, "QueueFrames", &c.QueueFrames, 256, 1)
	bounds.AtLeast(check, "QueueBytes", &c.QueueBytes, 8<<20, 1)
	bounds.AtLeast(check, "FrameLimit", &c.FrameLimit, 4<<10, 1)
	bounds.AtLeast(check, "PingInterval", &c.PingInterval, 30*time.Second, time.Millisecond)
	bounds.AtLeast(check, "PongTimeout", &c.PongTimeout, 10*time.Second, time.Millisecond)
	bounds.AtLeast(check, "WriteTimeout", &c.WriteTimeout, 10*time.Second, time.Millisecond)
	bounds.AtLeast(check, "Replay.Frames", &c.Replay.Frames, 256, 1)
	bounds.AtLeast(check, "Replay.Bytes", &c.Replay.Bytes, 1<<20, 1)
	bounds.AtLeast(check, "Replay.Sessions", &c.Replay.Sessions, 1000, 1)
	bounds.AtLeast(check, "Replay.TotalBytes", &c.Replay.TotalBytes, 64<<20, 1)
	bounds.AtLeast(check, "Replay.MaxAge", &c.Replay.MaxAge, 15*time.Minute, 1)
	var keys [][]byte
	for _, key := range c.ResumeKeys {
		if len(key) < minResumeKey {
			check.Wrong("ResumeKeys", "has a key of %d bytes, want at least %d", len(key), minResumeKey)
		}
		keys = append(keys, bytes.Clone(key))
	}
	c.ResumeKeys = keys
	if c.Operators != nil && c.Authenticate == nil {
		check.Wrong("Operators", "requires Authenticate")
	}
	if c.EverySessionToEveryone && c.Authenticate != nil {
		check.Wrong("EverySessionToEveryone", "excludes Authenticate")
	}
}

// entrance returns the entrance of the server.
func (c *Config) entrance(check *bounds.Check, agent string) *entrance.Entrance {
	return entrance.New(check, entrance.Config{
		Door: c.Door, Name: "websocket", Agent: agent, Sockets: true, Defaults: auth.Limits{
			Caller:  auth.Share{Open: 1000, PerSecond: 100, Burst: 1000},
			Session: auth.Share{Open: 100, PerSecond: 20, Burst: 200},
		},
	})
}
