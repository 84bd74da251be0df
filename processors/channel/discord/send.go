package discord

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/bwmarrin/discordgo"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

// createMessage are the parameters of https://discord.com/developers/docs/resources/message#create-message.
type createMessage struct {
	Content string `json:"content"`
	// Nonce has at most 25 characters. Discord creates no second message with it within a few minutes.
	Nonce        string                       `json:"nonce"`
	EnforceNonce bool                         `json:"enforce_nonce"`
	Mentions     mentions                     `json:"allowed_mentions"`
	Components   []discordgo.MessageComponent `json:"components,omitempty"`
	// Flags turn previews of links off: Discord would fetch every address that the model writes.
	Flags discordgo.MessageFlags `json:"flags"`
}

// mentions allows no mentions (https://discord.com/developers/docs/resources/message#allowed-mentions-object): an empty list, which
// discordgo's type leaves out.
type mentions struct {
	Parse []string `json:"parse"`
}

// maxID is the longest ID of a button, in characters (https://discord.com/developers/docs/components/reference#button).
const maxID = 100

// codes of https://discord.com/developers/docs/topics/opcodes-and-status-codes#json.
const unknownChannel = "unknown channel"

// Send implements adapter.Adapter. A thread wins over the recipient: to Discord it is a channel. If the thread has the ID of the
// message that is answered and does not exist, it is started from that message. An unknown channel, and a user or channel that the
// bot must not write to, are final failures.
func (a *Adapter) Send(ctx context.Context, c adapter.Chunk) (adapter.Sent, error) {
	channel := cmp.Or(c.To.Thread, c.To.Recipient)
	if !snowflake(channel) || !snowflake(c.To.Recipient) {
		return adapter.Sent{}, &adapter.Failure{Reason: "recipient is not a channel ID", Final: true}
	}
	sent, err := a.create(ctx, channel, c)
	var f *adapter.Failure
	if errors.As(err, &f) && f.Reason == unknownChannel && c.To.Thread != "" && c.To.Thread == c.To.MessageID && c.Index == 0 {
		if err := a.startThread(ctx, c); err != nil {
			return adapter.Sent{}, err
		}
		return a.create(ctx, channel, c)
	}
	return sent, err
}

func (a *Adapter) create(ctx context.Context, channel string, c adapter.Chunk) (adapter.Sent, error) {
	m := createMessage{Content: c.Text, Nonce: nonce(c.Key), EnforceNonce: true, Mentions: mentions{Parse: []string{}}, Flags: discordgo.MessageFlagsSuppressEmbeds}
	if approve, deny, ok := platform.ButtonData(c.Ask, maxID); ok {
		m.Components = []discordgo.MessageComponent{discordgo.ActionsRow{Components: []discordgo.MessageComponent{
			discordgo.Button{Label: "Approve", Style: discordgo.SuccessButton, CustomID: approve},
			discordgo.Button{Label: "Deny", Style: discordgo.DangerButton, CustomID: deny},
		}}}
	}
	answer, err := a.call(ctx, http.MethodPost, discordgo.EndpointChannelMessages(channel), m)
	return adapter.Sent{ID: adapter.Code(answer.ID())}, err
}

// startThread starts a thread from the message that is answered. The thread's ID is the message's
// (https://discord.com/developers/docs/resources/channel#start-thread-from-message).
func (a *Adapter) startThread(ctx context.Context, c adapter.Chunk) error {
	name := []rune(platform.DisplayName(c.SenderName))
	if len(name) == 0 {
		name = []rune("Conversation")
	}
	_, err := a.call(ctx, http.MethodPost, discordgo.EndpointChannelMessageThread(c.To.Recipient, c.To.MessageID), struct {
		Name string `json:"name"`
	}{string(name[:min(len(name), 100)])})
	return err
}

// nonce returns 25 characters that differ for different keys.
func nonce(key string) string { return platform.HashKey(key)[:25] }

// snowflake reports whether a text is an ID of Discord (https://discord.com/developers/docs/reference#snowflakes), which is a part
// of URLs.
func snowflake(id string) bool {
	return id != "" && len(id) <= 20 && strings.Trim(id, "0123456789") == ""
}
