"""Letters about membership dues."""
