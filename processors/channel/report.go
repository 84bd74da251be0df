package channel

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/topics"
)

// The statuses of reports.
const (
	// StatusSent: the platform accepted all chunks.
	StatusSent = "sent"
	// StatusPartial: the platform accepted some chunks, and the attempt failed.
	StatusPartial = "partial"
	// StatusSuppressed: there was nothing to send.
	StatusSuppressed = "suppressed"
)

// Report is the Response of a receipt: what was sent of a message.
type Report struct {
	Status string `json:"status"`
	// Format, Prefix, Limit and Unit are how the message was rendered, and Digest is of the rendered chunks.
	Format text.Format `json:"format,omitzero"`
	Prefix Prefix      `json:"prefix,omitzero"`
	Limit  int         `json:"limit,omitzero"`
	Unit   text.Unit   `json:"unit,omitzero"`
	Digest string      `json:"digest,omitzero"`
	// Chunks is the number of chunks, and Accepted how many of them the platform accepted.
	Chunks   int `json:"chunks,omitzero"`
	Accepted int `json:"accepted,omitzero"`
	// Sent are the platform's messages of the newest accepted chunks, oldest first: of all of them, unless their IDs have more than
	// 12 KiB.
	Sent []adapter.Sent `json:"sent,omitempty"`
}

const (
	// maxIDs bounds the IDs of a report in bytes. The report must not exceed delivery.MaxProgress.
	maxIDs = 12 << 10
	// maxID is the longest ID in bytes. Longer ones are left out.
	maxID = 512
	// perID is what an element of Sent has besides the ID, which needs at most twice its bytes.
	perID = 16
)

// ReadReport reads the Response of a receipt of a delivery to a channel. It reports false if it is none.
func ReadReport(response topics.Raw) (Report, bool) {
	var r Report
	if response == nil || json.Unmarshal([]byte(response), &r) != nil {
		return Report{}, false
	}
	if r.Status == "" || r.Accepted < 0 || r.Accepted > r.Chunks || len(r.Sent) > r.Accepted {
		return Report{}, false
	}
	return r, true
}

// raw returns the encoded report.
func (r Report) raw() topics.Raw {
	b, err := json.Marshal(r)
	if err != nil {
		return nil // a report is always valid: IDs are checked in accept
	}
	return b
}

// accept returns the report after one more chunk. It does not change r.
func (r Report) accept(s adapter.Sent) Report {
	if len(s.ID) > maxID {
		s.ID = ""
	}
	s.ID = strings.Map(func(c rune) rune {
		if c < ' ' {
			return -1
		}
		return c
	}, strings.ToValidUTF8(s.ID, ""))
	r.Sent = append(r.Sent[:len(r.Sent):len(r.Sent)], s)
	size := 0
	for i := len(r.Sent) - 1; i >= 0; i-- {
		if size += perID + 2*len(r.Sent[i].ID); size > maxIDs {
			r.Sent = r.Sent[i+1:]
			break
		}
	}
	r.Accepted++
	return r
}

// previous returns what the accepted chunks were sent as. Those whose IDs are not known any more are empty.
func (r Report) previous() []adapter.Sent {
	return append(make([]adapter.Sent, r.Accepted-len(r.Sent)), r.Sent...)
}

// digestOf returns a digest that is the same for the same chunks only.
func digestOf(chunks []string) string {
	h := sha256.New()
	for _, c := range chunks {
		_, _ = h.Write([]byte(strconv.Itoa(len(c)) + ":" + c))
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}
