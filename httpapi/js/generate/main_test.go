package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTypesAreFresh fails if the OpenAPI document has changed since the types were generated.
func TestTypesAreFresh(t *testing.T) {
	source, err := os.ReadFile("../../openapi.yaml")
	require.NoError(t, err)
	want, err := generate(source)
	require.NoError(t, err)
	have, err := os.ReadFile("../src/wire.ts")
	require.NoError(t, err)
	require.Equal(t, string(want), string(have), "run `go generate ./httpapi/js/generate`")
}

func TestTypes(t *testing.T) {
	got, err := generate([]byte(`
components:
  schemas:
    Point: {type: integer, description: A point.}
    Base:
      type: object
      properties: {at: {$ref: '#/components/schemas/Point'}, tags: {type: array, items: {type: string}}}
    More:
      $ref: '#/components/schemas/Base'
      required: [at]
    One:
      type: object
      required: [type]
      oneOf:
        - {properties: {type: {const: a}}}
        - {required: [x], properties: {type: {enum: [b, c]}, x: {type: [object, 'null']}}}
`))
	require.NoError(t, err)
	require.Equal(t, `// The types of requests and answers. Generated from httpapi/openapi.yaml by `+"`go generate ./httpapi/js/generate`"+`: do not edit.

export type Base = {
  at?: Point;
  tags?: Array<string>;
};

export type More = Base & {
  at: Point;
};

export type One = {
  type: unknown;
} & ({
  type: "a";
} | {
  type: ("b" | "c");
  x: ({ [member: string]: unknown } | null);
});

/** A point. */
export type Point = number;
`, string(got))
	_, err = generate([]byte(`{components: {schemas: {A: {type: date}}}}`))
	require.EqualError(t, err, "type date is not known")
}
