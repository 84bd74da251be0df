package topics

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// fill sets about three of four fields of a record.
func fill(r *rapid.T, v reflect.Value) {
	if rapid.IntRange(0, 3).Draw(r, "zero") == 0 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{
			"a", "<b>&amp;\u2028", "\xff\xfe\xed\xa0\x80", "a\x00\n\"\\/", "é😀", strings.Repeat("long\x01", largest/4), "approve", "deny",
			"close", "open", "failed", "completed", "approved", "complete", "delivered", "requeue", "cancel", "grant", "once",
		}).Draw(r, "text"))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64:
		v.SetInt(rapid.SampledFrom([]int64{
			1, -1, 7, math.MaxInt32, math.MaxInt32 + 1, math.MinInt64, math.MaxInt64, 1781943325000, 1781943325120,
		}).Draw(r, "integer"))
	case reflect.Float64:
		v.SetFloat(rapid.SampledFrom([]float64{math.Copysign(0, -1), 1, 0.1, 1e-9, 1e7, 1e300}).Draw(r, "double"))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i))
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[Raw]() {
			v.SetBytes(rapid.SampledFrom([]Raw{
				Raw(`{}`), Raw(`[]`), Raw(`[{}, null]`), Raw(`{"a":1.10, "b":[null]}`), Raw(`"x"`), Raw(`5`), Raw(`true`),
				Raw(`{"` + strings.Repeat("a", largest) + `":1}`),
			}).Draw(r, "raw"))
			return
		}
		n := rapid.IntRange(0, 3).Draw(r, "length")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(r, v.Index(i))
		}
	}
}

// checkTags requires that any value is written as JSON, that a record that is read is written with the same bytes, and that
// damaged records are read in the same way by both decoders.
func checkTags[T any](t *testing.T, name string, f wire[T]) {
	t.Run(name, func(t *testing.T) {
		rapid.Check(t, func(r *rapid.T) {
			var v T
			fill(r, reflect.ValueOf(&v).Elem())
			record, err := f.Marshal(v)
			require.NoError(r, err)
			require.True(r, jsontext.Value(record).IsValid(), "%s", record)
			if v, err = f.Unmarshal(record); err == nil {
				again, err := f.Marshal(v)
				require.NoError(r, err)
				require.Equal(r, string(record), string(again))
			}
			requireSameResult(r, f, mangled(r, append(records(t, name), record)))
		})
	})
}

func TestTaggedRecordsAreWrittenAsTheyAreRead(t *testing.T) {
	checkTags(t, "deliveries", deliveryWire)
	checkTags(t, "delivery-receipts", receiptWire)
	checkTags(t, "delivery-dlq", deadDeliveryWire)
	checkTags(t, "delegation-replies", delegationReplyWire)
	checkTags(t, "gate-outcomes", gateOutcomeWire)
	checkTags(t, "gate-grants", gateGrantWire)
	checkTags(t, "gate-decisions", gateDecisionWire)
	checkTags(t, "peer-audit", peerAuditWire)
	checkTags(t, "peer-commands", peerCommandWire)
	checkTags(t, "crew-inputs", crewInputWire)
	checkTags(t, "batch-messages", batchMessageWire)
	checkTags(t, "spending", spendingWire)
	checkTags(t, "session-cost", sessionCostWire)
}

func TestTagsSayHowAFieldIsReadAndWritten(t *testing.T) {
	type inner struct {
		A string `json:"a"`
		B string `json:"b,omitzero"`
	}
	type record struct {
		Text   string   `json:"text"`
		Maybe  *string  `json:"maybe"`
		If     int64    `json:"if" with:"Text"`
		Unless bool     `json:"unless" without:"Text"`
		Small  int64    `json:"small,omitzero" as:"int32"`
		At     int64    `json:"at,omitzero" as:"time"`
		Array  Raw      `json:"array" as:"list" nil:"[]"`
		Object Raw      `json:"object,omitzero" as:"object"`
		Words  []string `json:"words,omitempty"`
		List   []inner  `json:"list"`
		One    inner    `json:"one"`
		Sum    inner    `json:"sum" as:"merged"`
	}
	f := tagged[record](nil)
	for in, want := range map[string]string{
		`{}`: `{"text":"","maybe":null,"unless":false,"array":[],"list":[],"one":{"a":""},"sum":{"a":""}}`,
		`{"list":[null,{"b":"1"},null,{}],"words":[null,5],"one":{"a":"x"},"sum":{"a":"x"},"unless":1,"maybe":2,"other":{}}`: `{"text":"",` +
			`"maybe":"2","unless":true,"array":[],"words":["","5"],"list":[{"a":"","b":"1"},{"a":""}],"one":{"a":"x"},"sum":{"a":"x"}}`,
		`{"sum":{"a":"x"},"one":{"a":"x"},"at":"2026-06-20T10:14:50.120+02:00","text":"t","one":{"b":"y"},"sum":{"b":"y"},"sum":null,` +
			`"array":[ ],"object":{ }}`: `{"text":"t","maybe":null,"if":0,"at":"2026-06-20T08:14:50.120Z","array":[ ],"object":{ },` +
			`"list":[],"one":{"a":"","b":"y"},"sum":{"a":"x","b":"y"}}`,
	} {
		v, err := f.Unmarshal([]byte(in))
		require.NoError(t, err, in)
		written, err := f.Marshal(v)
		require.NoError(t, err)
		require.Equal(t, want, string(written))
	}
	for _, in := range []string{`{"small":2147483648}`, `{"array":[1]}`, `{"object":[]}`, `{"list":[5]}`, `{"one":[]}`, `{"words":{}}`} {
		_, err := f.Unmarshal([]byte(in))
		require.ErrorIs(t, err, ErrType)
		require.ErrorContains(t, err, "field "+in[2:strings.Index(in, `":`)]+": ")
	}
}
