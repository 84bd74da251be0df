package matrix

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/topics"
)

// event has the members of a room event that the adapter reads
// (https://spec.matrix.org/latest/client-server-api/#room-event-format).
type event struct {
	ID      string         `json:"event_id"`
	Room    string         `json:"room_id"` // not in a sync
	Sender  string         `json:"sender"`
	Type    string         `json:"type"`
	At      int64          `json:"origin_server_ts"` // in milliseconds
	Content jsontext.Value `json:"content"`
}

type content struct {
	Type     string `json:"msgtype"`
	Body     string `json:"body"`
	Mentions *struct {
		Users []string `json:"user_ids"`
	} `json:"m.mentions"`
	Relation struct {
		Type  string  `json:"rel_type"`
		Event string  `json:"event_id"`
		Reply eventID `json:"m.in_reply_to"`
	} `json:"m.relates_to"`
}

// receive passes on the event of a room if a person wrote it. Events that cannot be read are skipped. m.notice is what bots write
// (https://spec.matrix.org/latest/client-server-api/#mnotice), and m.replace an edit.
func (a *Adapter) receive(ctx context.Context, raw jsontext.Value, room string, to adapter.Receiver) error {
	var e event
	if err := platform.Decode(raw, &e); err != nil {
		a.config.Logger.Warn("matrix: event cannot be read; it is skipped")
		return nil
	}
	if room != "" {
		e.Room = room
	}
	var c content
	if e.Type != "m.room.message" || e.Sender == a.config.UserID || e.Sender == "" || e.ID == "" || e.Room == "" ||
		platform.Decode(e.Content, &c) != nil || c.Type != "m.text" || c.Body == "" || c.Relation.Type == "m.replace" {
		return nil
	}
	direct, err := a.isDirect(ctx, e.Room)
	if err != nil {
		return err
	}
	in := adapter.Inbound{Event: e.ID, At: platform.Time(e.At), Origin: topics.Origin{
		Channel: Channel, Account: a.config.Account, Recipient: e.Room, MessageID: e.ID, User: e.Sender,
		UserName: platform.DisplayName(e.Sender), Group: !direct,
	}}
	if c.Relation.Type == "m.thread" {
		in.Origin.Thread = c.Relation.Event
	}
	if in.Origin.Check() != nil { // an ID that is longer than the specification allows
		return nil
	}
	in.Text, in.Mentioned = a.addressed(c)
	return to.Receive(ctx, in)
}

// addressed returns the text without the bot's name at its beginning, and whether it mentions the bot
// (https://spec.matrix.org/latest/client-server-api/#user-and-room-mentions). Clients without intentional mentions write its ID.
func (a *Adapter) addressed(c content) (string, bool) {
	body := c.Body
	if c.Relation.Reply.ID != "" && strings.HasPrefix(body, "> ") {
		body = withoutFallback(body)
	}
	mentioned := strings.Contains(body, a.config.UserID)
	if c.Mentions != nil {
		mentioned = slices.Contains(c.Mentions.Users, a.config.UserID)
	}
	if mentioned {
		for _, name := range []string{a.config.UserID, a.config.DisplayName} {
			if after, ok := strings.CutPrefix(body, name); ok && name != "" && platform.EndsMention(after) {
				return platform.TrimMention(after), true
			}
		}
	}
	return body, mentioned
}

// withoutFallback removes the quoted message that older clients put before a reply
// (https://spec.matrix.org/v1.12/client-server-api/#fallbacks-for-rich-replies).
func withoutFallback(body string) string {
	for strings.HasPrefix(body, ">") {
		_, after, more := strings.Cut(body, "\n")
		if !more {
			return ""
		}
		body = after
	}
	return strings.TrimPrefix(body, "\n")
}

// membership is whether a room has at most two members, as it was at a time.
type membership struct {
	direct bool
	at     time.Time
}

// memberFor is how long it is remembered whether a room is direct.
const memberFor = 5 * time.Minute

// isDirect reports whether only the bot and one person are in a room. A room whose members the bot must not see is not direct.
func (a *Adapter) isDirect(ctx context.Context, room string) (bool, error) {
	now := a.config.Clock.Now()
	if m, ok := a.direct.Get(room); ok && now.Sub(m.at).Abs() < memberFor {
		return m.direct, nil
	}
	answer, err := a.call(ctx, a.poll, http.MethodGet, "/rooms/"+url.PathEscape(room)+"/joined_members", nil)
	var refused *adapter.Failure
	if errors.As(err, &refused) && !refused.Final {
		return false, err
	}
	var members struct {
		Joined map[string]jsontext.Value `json:"joined"`
	}
	if refused == nil && platform.Decode(answer.Body, &members) != nil {
		return false, errors.New("matrix: list of members cannot be read")
	}
	direct := refused == nil && len(members.Joined) <= 2
	a.direct.Add(room, membership{direct: direct, at: now})
	return direct, nil
}
