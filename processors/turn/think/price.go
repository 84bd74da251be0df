package think

import (
	"errors"
	"fmt"
	"math"

	"github.com/go-json-experiment/json"
)

// Tokens are the token counts of a model call. The four counts do not overlap.
type Tokens struct {
	Input      int64 // input tokens that no cache was used for
	CacheRead  int64 // input tokens that were read from the prompt cache
	CacheWrite int64 // input tokens that were written to the prompt cache
	Output     int64 // includes the model's reasoning
}

// Prompt returns the number of all input tokens.
func (t Tokens) Prompt() int64 { return t.Input + t.CacheRead + t.CacheWrite }

// Price is the price of a model's tokens in dollars per million tokens.
type Price struct {
	// UpTo is the largest prompt, in input tokens, that has this price; 0 means any.
	UpTo       int64   `json:"up_to,omitzero"`
	Input      float64 `json:"input"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
	Output     float64 `json:"output"`
}

// Prices are the prices of models by name. A model that is priced by the length of the prompt has several, ordered by UpTo;
// the first whose UpTo admits the prompt is used.
type Prices map[string][]Price

// ErrPrices is wrapped by the errors of ReadPrices.
var ErrPrices = errors.New("think: price table cannot be read")

// ReadPrices reads a price table, a JSON object by model name:
//
//	{"model-1": [{"input": 3, "cache_read": 0.3, "cache_write": 3.75, "output": 15}],
//	 "model-2": [{"up_to": 200000, "input": 1, "cache_read": 0.1, "cache_write": 1, "output": 5},
//	             {"input": 2, "cache_read": 0.2, "cache_write": 2, "output": 10}]}
//
// Unknown members and negative prices are errors.
func ReadPrices(table []byte) (Prices, error) {
	var p Prices
	if err := json.Unmarshal(table, &p, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPrices, err)
	}
	for model, tiers := range p {
		for _, t := range tiers {
			for _, price := range []float64{t.Input, t.CacheRead, t.CacheWrite, t.Output, float64(t.UpTo)} {
				if price < 0 || math.IsInf(price, 0) || math.IsNaN(price) {
					return nil, fmt.Errorf("%w: model %q has a negative price", ErrPrices, model)
				}
			}
		}
	}
	return p, nil
}

// perMillion is the number of tokens that a price is for.
const perMillion = 1e6

// Cost returns the cost of a call in dollars; nil if the table has no price for the model and the length of the prompt.
func (p Prices) Cost(model string, t Tokens) *float64 {
	for _, price := range p[model] {
		if price.UpTo != 0 && t.Prompt() > price.UpTo {
			continue
		}
		cost := (float64(t.Input)*price.Input + float64(t.CacheRead)*price.CacheRead +
			float64(t.CacheWrite)*price.CacheWrite + float64(t.Output)*price.Output) / perMillion
		return &cost
	}
	return nil
}
