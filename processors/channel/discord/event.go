package discord

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/topics"
)

// message has the members of https://discord.com/developers/docs/resources/message#message-object that the adapter reads.
// discordgo's type cannot be read if one component of the message has a type that discordgo does not know.
type message struct {
	ID         string    `json:"id"`
	Channel    string    `json:"channel_id"`
	Guild      string    `json:"guild_id"`
	Author     user      `json:"author"`
	Member     member    `json:"member"`
	Content    string    `json:"content"`
	Timestamp  time.Time `json:"timestamp"`
	Type       int       `json:"type"`
	Webhook    string    `json:"webhook_id"`
	Mentions   []user    `json:"mentions"`
	Referenced *struct {
		Author user `json:"author"`
	} `json:"referenced_message"`
}

type user struct {
	ID         string `json:"id"`
	Username   string `json:"username"`
	GlobalName string `json:"global_name"`
	Bot        bool   `json:"bot"`
}

type member struct {
	Nick  string   `json:"nick"`
	Roles []string `json:"roles"`
	User  user     `json:"user"`
}

func (u user) name(nick string) string {
	return platform.DisplayName(cmp.Or(nick, u.GlobalName, u.Username))
}

// written reports whether a person wrote a message: its type is a message or a reply
// (https://discord.com/developers/docs/resources/message#message-object-message-types).
func (m message) written() bool {
	return (m.Type == int(discordgo.MessageTypeDefault) || m.Type == int(discordgo.MessageTypeReply)) && !m.Author.Bot &&
		m.Webhook == "" && m.Content != "" && snowflake(m.ID) && snowflake(m.Channel)
}

// inbound returns the event of a message. bot is the bot's user ID.
func (a *Adapter) inbound(m message, where place, bot string) adapter.Inbound {
	in := adapter.Inbound{
		Event: m.ID, Guild: m.Guild, Roles: m.Member.Roles, At: m.Timestamp,
		Origin: topics.Origin{
			Channel: Channel, Account: a.config.Account, Recipient: where.channel, Thread: where.thread, MessageID: m.ID,
			User: m.Author.ID, UserName: m.Author.name(m.Member.Nick), Group: m.Guild != "",
		},
	}
	in.Mentioned = m.Referenced != nil && m.Referenced.Author.ID == bot
	for _, u := range m.Mentions {
		in.Mentioned = in.Mentioned || u.ID == bot
	}
	in.Text = m.Content
	for _, mention := range []string{"<@" + bot + ">", "<@!" + bot + ">"} {
		if after, ok := strings.CutPrefix(m.Content, mention); ok {
			in.Text = platform.TrimMention(after)
		}
	}
	return in
}

// place is where a message is: in a channel, or in a thread of it.
type place struct{ channel, thread string }

// locate returns the place of a channel's ID. To Discord a thread is a channel with a parent, which messages do not say, so
// the first message of a channel is looked up. A channel that cannot be looked up any more counts as one without a parent. Channels
// of direct messages have no threads.
func (a *Adapter) locate(ctx context.Context, channel, guild string) (place, error) {
	if guild == "" {
		return place{channel: channel}, nil
	}
	if p, ok := a.places.Get(channel); ok {
		return p, nil
	}
	answer, err := a.call(ctx, http.MethodGet, discordgo.EndpointChannel(channel), nil)
	var f *adapter.Failure
	switch {
	case errors.As(err, &f) && f.Final:
		return place{channel: channel}, nil
	case err != nil:
		return place{}, err
	}
	var found channelObject
	if err := platform.Decode(answer.Body, &found); err != nil {
		return place{}, &adapter.Failure{Reason: "response cannot be read"}
	}
	p := found.place(channel)
	a.places.Add(channel, p)
	return p, nil
}

// channelObject is https://discord.com/developers/docs/resources/channel#channel-object.
type channelObject struct {
	Type   int    `json:"type"`
	Parent string `json:"parent_id"`
}

func (c channelObject) place(id string) place {
	switch discordgo.ChannelType(c.Type) {
	case discordgo.ChannelTypeGuildNewsThread, discordgo.ChannelTypeGuildPublicThread, discordgo.ChannelTypeGuildPrivateThread:
		if snowflake(c.Parent) {
			return place{channel: c.Parent, thread: id}
		}
	}
	return place{channel: id}
}
