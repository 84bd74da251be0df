package discord

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/topics"
)

// interaction has the members of https://discord.com/developers/docs/interactions/receiving-and-responding#interaction-object that
// the adapter reads.
type interaction struct {
	ID      string         `json:"id"`
	Type    int            `json:"type"`
	Token   string         `json:"token"`
	Guild   string         `json:"guild_id"`
	Channel string         `json:"channel_id"`
	In      *channelObject `json:"channel"`
	Member  member         `json:"member"` // in guilds
	User    user           `json:"user"`   // in direct messages
	Message struct {
		ID string `json:"id"`
	} `json:"message"`
	Data struct {
		CustomID string `json:"custom_id"`
	} `json:"data"`
}

// The responses to interactions: a ping is answered with a pong, and a pressed button with nothing new to show
// (https://discord.com/developers/docs/interactions/receiving-and-responding#interaction-response-object).
const (
	pong   = `{"type":1}`
	seenIt = `{"type":6}`
)

const (
	// signatureWindow is how far the time of a signature may be from the clock. Discord names no window; without one, a
	// recorded request could be repeated at any time.
	signatureWindow = 5 * time.Minute
	// answerWithin is within which time a receiver must take a pressed button: Discord gives up after 3 s.
	answerWithin = 2500 * time.Millisecond
)

// Handler returns the handler of the application's interactions endpoint, which passes pressed buttons to a receiver. A request
// whose Ed25519 signature is invalid, or more than 5 minutes old, is answered with 401
// (https://discord.com/developers/docs/interactions/overview#setting-up-an-endpoint-validating-security-request-headers), and a body
// over 1 MiB with 413. If the receiver returns an error the answer is 503: the person sees that it failed and can press again. It
// returns an error if Config.PublicKey is empty.
func (a *Adapter) Handler(to adapter.Receiver) (http.Handler, error) {
	if len(a.key) == 0 {
		return nil, errors.New("discord: an interactions endpoint needs Config.PublicKey")
	}
	door := platform.NewDoor(platform.DoorConfig{Logger: a.config.Logger})
	return door.Handler(func(r *http.Request, body []byte) platform.Reply {
		r.Body = io.NopCloser(bytes.NewReader(body))
		// The time is part of what is signed.
		if !platform.Recent(r.Header.Get("X-Signature-Timestamp"), a.config.Clock.Now(), signatureWindow) || !discordgo.VerifyInteraction(r, a.key) {
			return platform.Forged
		}
		var i interaction
		if err := platform.Decode(body, &i); err != nil {
			return platform.Malformed
		}
		switch discordgo.InteractionType(i.Type) {
		case discordgo.InteractionPing:
			return platform.JSON(pong)
		case discordgo.InteractionMessageComponent:
			ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
			defer cancel()
			if a.pressed(ctx, i, door.Receiver(to)) != nil {
				return platform.Later
			}
			return platform.JSON(seenIt)
		}
		return platform.Malformed
	}), nil
}

// pressed passes on a pressed button of the adapter's, and ignores others.
func (a *Adapter) pressed(ctx context.Context, i interaction, to adapter.Receiver) error {
	decision := platform.DecisionOf(i.Data.CustomID)
	who := i.User
	if i.Guild != "" {
		who = i.Member.User
	}
	if decision == nil || who.Bot || who.ID == "" || !snowflake(i.ID) || !snowflake(i.Channel) {
		return nil
	}
	var where place
	if i.In != nil {
		where = i.In.place(i.Channel)
	} else {
		var err error
		if where, err = a.locate(ctx, i.Channel, i.Guild); err != nil {
			return err
		}
	}
	return to.Receive(ctx, adapter.Inbound{
		Event: "interaction-" + i.ID, Mentioned: true, Guild: i.Guild, Roles: i.Member.Roles,
		Decision: decision,
		Origin: topics.Origin{
			Channel: Channel, Account: a.config.Account, Recipient: where.channel, Thread: where.thread, MessageID: i.Message.ID,
			User: who.ID, UserName: who.name(i.Member.Nick), Group: i.Guild != "",
		},
	})
}

// answered tells Discord that a pressed button, which came over the gateway, was handled. A failure changes nothing.
func (a *Adapter) answered(ctx context.Context, i interaction) {
	if !snowflake(i.ID) || strings.ContainsAny(i.Token, "/?#%") {
		return
	}
	_, err := a.call(ctx, http.MethodPost, discordgo.EndpointInteractionResponse(i.ID, i.Token), struct {
		Type int `json:"type"`
	}{int(discordgo.InteractionResponseDeferredMessageUpdate)})
	var f *adapter.Failure
	if errors.As(err, &f) {
		a.config.Logger.Info("discord: pressed button was handled, but not acknowledged", zap.String("reason", f.Reason))
	}
}
