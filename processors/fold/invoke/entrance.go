package invoke

import (
	"net/http"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

func (c *Config) entrance(check *bounds.Check) *entrance.Entrance {
	return entrance.New(check, entrance.Config{
		Door: c.Door, Name: "invoke", CORS: entrance.CORS{Methods: methods, Exposed: exposedHeaders, Headers: []string{
			HeaderLastEvent, headerIdempotency, HeaderSession, HeaderTranscript, HeaderControl,
			HeaderEmbeds, HeaderFormat, HeaderTrace, HeaderSpan, headerParent, headerBaggage,
		}},
	})
}

// methods are the methods that scripts of other origins may use.
const methods = "POST, GET, OPTIONS"

// refuse answers a request that the entrance refused.
func (c *exchange) refuse(r *entrance.Refusal) {
	r.SetHeader(c.w.Header())
	switch r.Status {
	case http.StatusRequestEntityTooLarge:
		c.invalid(r.Status, errBodySize.Error())
	case http.StatusUnsupportedMediaType:
		c.invalid(r.Status, errBodyType.Error())
	default:
		c.detail(r.Status, r.Text)
	}
}
