package provider

import "github.com/helixd/helixd/agentloop/model"

type classified struct {
	code         string
	retryable    bool
	beforeStatus bool // says more than the HTTP status
}

// named are the codes and types that providers give errors.
var named = map[string]classified{
	"context_length_exceeded":       {model.CodeContextLength, false, true},
	"content_filter":                {model.CodeContentFiltered, false, true},
	"content_policy_violation":      {model.CodeContentFiltered, false, true},
	"responsibleaipolicyviolation":  {model.CodeContentFiltered, false, true},
	"moderation_blocked":            {model.CodeContentFiltered, false, true},
	"insufficient_quota":            {model.CodeRateLimited, false, true},
	"billing_hard_limit_reached":    {model.CodeRateLimited, false, true},
	"rate_limit_exceeded":           {model.CodeRateLimited, true, false},
	"rate_limit_error":              {model.CodeRateLimited, true, false},
	"rate_limit_reached_error":      {model.CodeRateLimited, true, false},
	"tokens":                        {model.CodeRateLimited, true, false},
	"requests":                      {model.CodeRateLimited, true, false},
	"overloaded":                    {model.CodeOverloaded, true, false},
	"overloaded_error":              {model.CodeOverloaded, true, false},
	"engine_overloaded_error":       {model.CodeOverloaded, true, false},
	"server_overloaded":             {model.CodeOverloaded, true, false},
	"service_unavailable":           {model.CodeOverloaded, true, false},
	"server_error":                  {model.CodeUnavailable, true, false},
	"internal_error":                {model.CodeUnavailable, true, false},
	"internal_server_error":         {model.CodeUnavailable, true, false},
	"internalservererror":           {model.CodeUnavailable, true, false},
	"api_error":                     {model.CodeUnavailable, true, false},
	"timeout":                       {model.CodeTimeout, true, false},
	"timeout_error":                 {model.CodeTimeout, true, false},
	"authentication_error":          {model.CodeAuthFailed, false, false},
	"invalid_api_key":               {model.CodeAuthFailed, false, false},
	"permission_error":              {model.CodeAuthFailed, false, false},
	"invalid_request_error":         {model.CodeInvalidRequest, false, false},
	"badrequesterror":               {model.CodeInvalidRequest, false, false},
	"not_found_error":               {model.CodeInvalidRequest, false, false},
	"model_not_found":               {model.CodeInvalidRequest, false, false},
	"invalid_prompt":                {model.CodeInvalidRequest, false, false},
	"unsupported_parameter":         {model.CodeInvalidRequest, false, false},
	"exceeded_current_quota_error":  {model.CodeRateLimited, false, true},
	"exceed_context_size_error":     {model.CodeContextLength, false, true},
	"model_context_window_exceeded": {model.CodeContextLength, false, true},

	"billing_error":            {model.CodeRateLimited, false, true},
	"request_too_large":        {model.CodeInvalidRequest, false, false},
	"invalid_image":            {model.CodeInvalidRequest, false, false},
	"invalid_image_format":     {model.CodeInvalidRequest, false, false},
	"invalid_base64_image":     {model.CodeInvalidRequest, false, false},
	"invalid_image_url":        {model.CodeInvalidRequest, false, false},
	"invalid_image_mode":       {model.CodeInvalidRequest, false, false},
	"image_too_large":          {model.CodeInvalidRequest, false, false},
	"image_too_small":          {model.CodeInvalidRequest, false, false},
	"image_parse_error":        {model.CodeInvalidRequest, false, false},
	"image_file_too_large":     {model.CodeInvalidRequest, false, false},
	"image_file_not_found":     {model.CodeInvalidRequest, false, false},
	"empty_image_file":         {model.CodeInvalidRequest, false, false},
	"failed_to_download_image": {model.CodeInvalidRequest, false, false},
	"data_residency_mismatch":  {model.CodeInvalidRequest, false, false},
	"vector_store_timeout":     {model.CodeTimeout, true, false},

	"unsupported_image_media_type":   {model.CodeInvalidRequest, false, false},
	"image_content_policy_violation": {model.CodeContentFiltered, false, true},
	"bio_policy":                     {model.CodeContentFiltered, false, true},
	"misalignment_policy_violation":  {model.CodeContentFiltered, false, true},
}
