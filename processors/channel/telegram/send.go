package telegram

import (
	"context"
	"strconv"
	"strings"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/processors/channel/text"
)

// sendMessage are the parameters of https://core.telegram.org/bots/api#sendmessage.
type sendMessage struct {
	// Chat is a number, or "@" and the name of a public group.
	Chat      any      `json:"chat_id"`
	Thread    int64    `json:"message_thread_id,omitzero"`
	Text      string   `json:"text"`
	ParseMode string   `json:"parse_mode,omitzero"`
	Reply     *reply   `json:"reply_parameters,omitzero"`
	Markup    *markup  `json:"reply_markup,omitzero"`
	Preview   *preview `json:"link_preview_options,omitzero"`
}

type reply struct {
	Message int64 `json:"message_id"`
	// WithoutIt sends the message also if the quoted one was deleted.
	WithoutIt bool `json:"allow_sending_without_reply"`
}

// preview turns previews of links off: Telegram would fetch every address that the model writes.
type preview struct {
	Disabled bool `json:"is_disabled"`
}

type markup struct {
	Keyboard [][]button `json:"inline_keyboard"`
}

type button struct {
	Text string `json:"text"`
	Data string `json:"callback_data"`
}

// maxData is the longest data of a button, in bytes (https://core.telegram.org/bots/api#inlinekeyboardbutton).
const maxData = 64

// Send implements adapter.Adapter. A recipient that is blocked, unknown or not reachable is a final failure; so is a thread that
// is not a topic's number, because the text would be visible elsewhere without it.
func (a *Adapter) Send(ctx context.Context, c adapter.Chunk) (adapter.Sent, error) {
	m, failure := a.message(c)
	if failure != nil {
		return adapter.Sent{}, failure
	}
	result, err := a.call(ctx, a.client, "sendMessage", m)
	if err != nil {
		return adapter.Sent{}, err
	}
	var sent struct {
		ID int64 `json:"message_id"`
	}
	if platform.Decode(result, &sent) != nil || sent.ID == 0 {
		return adapter.Sent{}, nil // it was sent
	}
	return adapter.Sent{ID: strconv.FormatInt(sent.ID, 10)}, nil
}

func (a *Adapter) message(c adapter.Chunk) (sendMessage, *adapter.Failure) {
	m := sendMessage{Text: c.Text, Preview: &preview{Disabled: true}}
	if c.Format == text.TelegramHTML {
		m.ParseMode = "HTML"
	}
	id, err := strconv.ParseInt(c.To.Recipient, 10, 64)
	switch {
	case err == nil:
		m.Chat = id
	case strings.HasPrefix(c.To.Recipient, "@"):
		m.Chat = c.To.Recipient
	default:
		return m, &adapter.Failure{Reason: "recipient is not a chat ID", Final: true}
	}
	if c.To.Thread != "" {
		if m.Thread, err = strconv.ParseInt(c.To.Thread, 10, 64); err != nil || m.Thread <= 0 {
			return m, &adapter.Failure{Reason: "thread is not a topic ID", Final: true}
		}
	}
	if a.config.Quote && c.To.Group && c.Index == 0 {
		if message, err := strconv.ParseInt(c.To.MessageID, 10, 64); err == nil {
			m.Reply = &reply{Message: message, WithoutIt: true}
		}
	}
	if approve, deny, ok := platform.ButtonData(c.Ask, maxData); ok {
		m.Markup = &markup{Keyboard: [][]button{{{Text: "Approve", Data: approve}, {Text: "Deny", Data: deny}}}}
	}
	return m, nil
}
