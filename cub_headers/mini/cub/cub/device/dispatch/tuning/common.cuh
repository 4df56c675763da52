#pragma once

CUB_NAMESPACE_BEGIN
namespace detail
{
enum class shade
{
  light,
  dark
};
} // namespace detail
CUB_NAMESPACE_END
