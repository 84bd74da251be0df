package telegram

import (
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/topics"
)

// update has the members of https://core.telegram.org/bots/api#update that the adapter reads.
type update struct {
	ID       int64     `json:"update_id"`
	Message  *message  `json:"message"`
	Callback *callback `json:"callback_query"`
}

type message struct {
	ID              int64    `json:"message_id"`
	Thread          int64    `json:"message_thread_id"`
	Topic           bool     `json:"is_topic_message"`
	From            *user    `json:"from"`
	Date            int64    `json:"date"`
	Chat            chat     `json:"chat"`
	Reply           *message `json:"reply_to_message"`
	Text            string   `json:"text"`
	Entities        []entity `json:"entities"`
	Caption         string   `json:"caption"`
	CaptionEntities []entity `json:"caption_entities"`
	// A channel's post that Telegram forwards to the channel's group; nobody wrote it there.
	Automatic bool `json:"is_automatic_forward"`
	// What another one wrote: https://core.telegram.org/bots/api#message. Before version 7.0 of the API, forwarded messages had
	// forward_date instead of forward_origin.
	ForwardOrigin jsontext.Value `json:"forward_origin"`
	ForwardDate   int64          `json:"forward_date"`
	Via           *user          `json:"via_bot"`
}

type user struct {
	ID        int64  `json:"id"`
	Bot       bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
}

type chat struct {
	ID   int64  `json:"id"`
	Type string `json:"type"`
}

// entity is a part of a text. Its offset and length count UTF-16 code units.
type entity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
	User   *user  `json:"user"`
}

type callback struct {
	ID      string   `json:"id"`
	From    user     `json:"from"`
	Message *message `json:"message"`
	Data    string   `json:"data"`
}

// inbound returns the event of an update, and false if no person caused one that the adapter passes on.
func (a *Adapter) inbound(u update) (adapter.Inbound, bool) {
	switch m, c := u.Message, u.Callback; {
	case m != nil && m.From != nil && !m.From.Bot && !m.Automatic:
		written, entities := m.Text, m.Entities
		if written == "" {
			written, entities = m.Caption, m.CaptionEntities
		}
		if written == "" {
			return adapter.Inbound{}, false
		}
		in := a.event(u, *m, *m.From)
		in.Text, in.Mentioned = a.addressed(written, entities)
		in.Foreign = m.ForwardOrigin.Kind() == '{' || m.ForwardDate > 0 || m.Via != nil
		in.Mentioned = in.Mentioned || a.repliesToBot(*m)
		in.At = platform.Time(m.Date * 1000)
		return in, true
	case c != nil && c.Message != nil && !c.From.Bot:
		in := a.event(u, *c.Message, c.From)
		in.Decision, in.Mentioned = platform.DecisionOf(c.Data), true
		return in, in.Decision != nil
	}
	return adapter.Inbound{}, false
}

// event returns what messages and pressed buttons have in common. The thread is set for topics only: outside of them Telegram
// numbers chains of replies with message_thread_id, to which nothing can be sent.
func (a *Adapter) event(u update, m message, from user) adapter.Inbound {
	o := topics.Origin{
		Channel: Channel, Account: a.config.Account, Recipient: strconv.FormatInt(m.Chat.ID, 10),
		MessageID: strconv.FormatInt(m.ID, 10), User: strconv.FormatInt(from.ID, 10),
		UserName: platform.DisplayName(from.FirstName + " " + from.LastName),
		Group:    m.Chat.Type != "private",
	}
	if m.Topic && m.Thread > 0 {
		o.Thread = strconv.FormatInt(m.Thread, 10)
	}
	return adapter.Inbound{Event: strconv.FormatInt(u.ID, 10), Origin: o}
}

// repliesToBot reports whether a message replies to one of the bot's. In a topic, messages that reply to nothing have the message
// that created the topic as reply_to_message.
func (a *Adapter) repliesToBot(m message) bool {
	r := m.Reply
	return r != nil && r.From != nil && r.From.ID == a.user && !(m.Topic && r.ID == m.Thread)
}

// addressed returns a text without the bot's mention at its beginning, and whether it mentions the bot
// (https://core.telegram.org/bots/api#messageentity).
func (a *Adapter) addressed(written string, entities []entity) (rest string, mentioned bool) {
	units := utf16.Encode([]rune(written))
	rest = written
	name := "@" + a.config.Username
	for _, e := range entities {
		if e.Offset < 0 || e.Length <= 0 || e.Offset > len(units) || e.Length > len(units)-e.Offset {
			continue
		}
		part := string(utf16.Decode(units[e.Offset : e.Offset+e.Length]))
		after := string(utf16.Decode(units[e.Offset+e.Length:]))
		command, of, _ := strings.Cut(part, "@") // such as /stop@bot
		begin := platform.TrimMention(after)
		switch {
		case e.Type == "mention" && strings.EqualFold(part, name), e.Type == "text_mention" && e.User != nil && e.User.ID == a.user:
		case e.Type == "bot_command" && strings.EqualFold("@"+of, name):
			begin = command + after
		default:
			continue
		}
		mentioned = true
		if e.Offset == 0 {
			rest = begin
		}
	}
	return rest, mentioned
}
