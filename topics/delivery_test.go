package topics

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWithoutTokenReplacesTheTokenByTheRouteID(t *testing.T) {
	for in, want := range map[string]string{
		`{"callbackService":"pier","bearerToken":"secret","x":[1.1]}`: `{"callbackService":"pier","x":[1.1],"route_id":"r1"}`,
		`{ "bearer\u0054oken" : "secret" , "a" : null }`:              `{"a":null,"route_id":"r1"}`,
		`{"route_id":"somebody else's","bearerToken":1}`:              `{"route_id":"r1"}`,
		`{}`:               `{"route_id":"r1"}`,
		`{"a\"b":{"c":1}}`: `{"a\"b":{"c":1},"route_id":"r1"}`,
	} {
		got := WithoutToken(Raw(in), "r1")
		require.Equal(t, want, string(got))
		require.Equal(t, "r1", RouteIDOf(got))
		require.Empty(t, TokenOf(got))
	}
	require.Nil(t, WithoutToken(Raw(`[]`), "r1"))
	require.Equal(t, "secret", TokenOf(Raw(`{"bearerToken":"secret"}`)))
	require.Equal(t, "harbor", ServiceOf(Raw(`{"callbackService":"harbor"}`)))
	for _, none := range []string{"null", "{}", `["harbor"]`} {
		require.Empty(t, ServiceOf(Raw(`{"callbackService":`+none+`}`)), none)
	}
}

func TestRouteIDDependsOnSessionAndCause(t *testing.T) {
	require.Len(t, RouteID("s", "c"), 32)
	require.Equal(t, RouteID("s", "c"), RouteID("s", "c"))
	require.NotEqual(t, RouteID("sc", ""), RouteID("s", "c"))
}

func TestDeliveryRecordsWithoutRequiredFieldsArePoison(t *testing.T) {
	c := harbor(t)
	for _, record := range []string{
		`{}`, `{"delivery_id":"d","attempt":0,"route":{"kind":"http"}}`, `{"delivery_id":"d","attempt":1}`,
		`{"attempt":1,"route":{"kind":"http"}}`, `{"delivery_id":"d","attempt":1,"route":"http"}`,
	} {
		poison(t, c.Deliveries.Codec(), record, ErrType)
	}
	for _, record := range []string{
		`{}`, `{"delivery_id":"d"}`, `{"outcome":"dead"}`, `{"delivery_id":"d","outcome":"lost"}`,
	} {
		poison(t, c.DeliveryReceipts.Codec(), record, ErrType)
	}
	for _, record := range []string{`{}`, `{"delivery":null}`, `{"delivery":{}}`} {
		poison(t, c.DeliveryDLQ.Codec(), record, ErrType)
	}
	for _, record := range []string{`{}`, `{"action":"requeue"}`, `{"action":"drop","delivery_id":"d"}`} {
		poison(t, c.DeliveryControl.Codec(), record, ErrType)
	}
}

func TestDeadDeliveryIsWrittenWithoutItsToken(t *testing.T) {
	secret := "secret"
	raw, err := harbor(t).DeliveryDLQ.Codec().Marshal(DeadDelivery{Delivery: Delivery{DeliveryID: "d", Token: &secret}})
	require.NoError(t, err)
	require.NotContains(t, string(raw), secret)
}
